// Marks of the picked object: its line and hits.

import { sideOf } from "./projection.js";

/** {points: [[x, y, z, side]], lines}, in mm, of `pick`; `axes` has the lines in the middle of towers and jets. */
export function marksOf(event, objects, axes, pick) {
  return pick ? MARKS[pick.kind](event, objects, pick.row, axes) : { points: [], lines: [] };
}

const MARKS = {
  hit: (event, objects, row) => ({ points: points(objects.hits, [row]), lines: [] }),
  track: (event, { hits, tracks }, row) => ({
    points: points(hits, rowsOf(event, hits, tracks.hitIds?.[row])),
    lines: [tracks.lines[row]],
  }),
  particle: (event, { hits, particles }, row) => ({
    points: points(hits, hitsOf(hits.particle, particles.row[row])),
    lines: [particles.lines[row]],
  }),
  tower: (event, objects, row, axes) => ({ points: [], lines: [axes.towers[row]] }),
  jet: (event, objects, row, axes) => ({ points: [], lines: [axes.jets[row]] }),
};

function points({ position }, rows) {
  return rows.map((row) => {
    const [x, y, z] = position.slice(3 * row, 3 * row + 3);
    return [x, y, z, sideOf(y)];
  });
}

/** Rows of the hits with these ids. */
function rowsOf(event, { id, count }, ids) {
  if (!ids) return [];
  const wanted = new Set(Array.from(ids, Number));
  const rows = [];
  for (let row = 0; row < count; row += 1) if (wanted.has(Number(id ? id[row] : row))) rows.push(row);
  return rows;
}

function hitsOf(particle, wanted) {
  return particle ? Array.from(particle.keys()).filter((hit) => particle[hit] === wanted) : [];
}
