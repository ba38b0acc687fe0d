// The geometry of the detector: layers of a known one, or derived from the event's hits.
//
// A layer is {volume, kind: "barrel" | "disc", r: [minimum, maximum], z: [minimum, maximum]}, in mm.

import { fieldOf } from "./field.js";
import { column, rows } from "./tables.js";

// A detector is known if this fraction of hits is within TOLERANCE (mm) of its layers, which may lack modules.
const TOLERANCE = 30;
const MOSTLY = 0.9;

/** `known` if the event's hits are in its layers, else a detector from the hits. */
export function detectorOf(event, known) {
  const hits = positions(event);
  const found = fits(hits, known.layers) ? known : fromHits(hits);
  return { ...found, field: fieldOf(event, found.field) };
}

function positions(event) {
  const [x, y, z, volume, layer] = ["x", "y", "z", "volume_id", "layer_id"].map((name) =>
    column(event, "tracker_hits", name),
  );
  const count = x && y && z ? rows(event, "tracker_hits") : 0;
  return Array.from({ length: count }, (_, hit) => ({
    r: Math.hypot(x[hit], y[hit]),
    z: z[hit],
    volume: volume ? volume[hit] : 0,
    layer: layer ? layer[hit] : 0,
  }));
}

function fits(hits, layers) {
  const byVolume = grouped(layers, ({ volume }) => volume);
  const inside = hits.filter(({ r, z, volume }) =>
    byVolume.get(volume)?.some((layer) => within(r, layer.r) && within(z, layer.z)),
  );
  return inside.length >= MOSTLY * hits.length;
}

function within(value, [low, high]) {
  return value >= low - TOLERANCE && value <= high + TOLERANCE;
}

/** A detector from hits alone, with outlines for each layer of each volume. */
function fromHits(hits) {
  const layers = [...grouped(hits, ({ volume, layer }) => `${volume}/${layer}`).values()].map(layerOf);
  const radius = 1.05 * Math.max(...layers.map(({ r }) => r[1]));
  const length = 1.05 * Math.max(...layers.flatMap(({ z }) => z.map(Math.abs)));
  const volumes = Object.fromEntries(layers.map(({ volume }) => [volume, `volume ${volume}`]));
  return {
    name: "",
    volumes,
    layers,
    tracker: { radius, length },
    calorimeter: { radius: 1.1 * radius, length: 1.05 * length },
  };
}

function layerOf(hits) {
  const r = range(hits.map((hit) => hit.r));
  const z = range(hits.map((hit) => hit.z));
  const kind = z[1] - z[0] > r[1] - r[0] ? "barrel" : "disc";
  return { volume: hits[0].volume, kind, r, z };
}

function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (groups.has(key)) groups.get(key).push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** The minimum and the maximum of `values`, however many. */
function range(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
}
