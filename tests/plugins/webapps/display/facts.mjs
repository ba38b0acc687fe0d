// What the display's modules make of an event in a file of Arrow streams, as JSON: node facts.mjs FILE DETECTOR

import { readFile } from "node:fs/promises";
import { detectorOf } from "../../../../plugins/collidium_plugins/webapps/static/js/display/detector.js";
import { objectsOf } from "../../../../plugins/collidium_plugins/webapps/static/js/display/objects.js";
import { readTables } from "../../../../plugins/collidium_plugins/webapps/static/js/display/tables.js";

const [file, geometry] = process.argv.slice(2);
const event = readTables(new Uint8Array(await readFile(file)));
const detector = detectorOf(event, JSON.parse(await readFile(geometry, "utf8")));
const { hits, tracks, particles, towers } = objectsOf(event, detector);
const rowOfHit = new Map(Array.from(hits.id, (id, row) => [Number(id), row]));

/** From a hit to the nearest place of a track's line, mm. */
function distance(row, line) {
  const hit = hits.position.subarray(3 * row, 3 * row + 3);
  let nearest = Infinity;
  for (let at = 0; at + 3 < line.length; at += 3) nearest = Math.min(nearest, toSegment(hit, line.slice(at, at + 6)));
  return nearest;
}

function toSegment([x, y, z], [ax, ay, az, bx, by, bz]) {
  const [dx, dy, dz] = [bx - ax, by - ay, bz - az];
  const along = ((x - ax) * dx + (y - ay) * dy + (z - az) * dz) / (dx * dx + dy * dy + dz * dz || 1);
  const at = Math.min(Math.max(along, 0), 1);
  return Math.hypot(ax + at * dx - x, ay + at * dy - y, az + at * dz - z);
}

const distances = tracks.lines.flatMap((line, track) =>
  Array.from(tracks.hitIds[track], Number)
    .filter((id) => rowOfHit.has(id))
    .map((id) => [hits.values.volume[rowOfHit.get(id)], distance(rowOfHit.get(id), line)]),
);
const rows = Object.fromEntries(Object.entries(event.tables).map(([name, table]) => [name, table.rows]));
const position = Array.from(hits.position.subarray(0, 3));
console.log(
  JSON.stringify({
    source: event.source,
    rows,
    position,
    withheld: Object.values(event.tables).some(({ withheld }) => withheld),
    particlesKnown: hits.particle !== null,
    pt: Array.from(tracks.values.pt),
    detector: detector.name,
    field: detector.field,
    distances,
    particles: particles.count,
    towers: towers.bins.reduce((sum, { energy }) => sum + energy, 0),
  }),
);
