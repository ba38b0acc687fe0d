// The magnetic field of an event.

import { GEV_PER_TESLA_MM } from "./helix.js";
import { column, rows } from "./tables.js";

// Minimum distance of hits from the perigee (mm), and their minimum number, to measure a curvature.
const MIN_CHORD = 200;
const MIN_HITS = 20;
// The default in tesla.
const USUAL = 3;

/** Tesla along z: from the event, else measured from its tracks, else `known` or the default. */
export function fieldOf(event, known) {
  return Number(event.source.field_tesla) || measured(event) || known || USUAL;
}

/**
 * The median over hits of tracks. A circle through the perigee along φ, and through a hit that lies d∥ along that
 * direction and d⊥ across it, has the curvature 2 d⊥ / (d∥² + d⊥²); with p_T and charge that is a field.
 */
function measured(event) {
  const of = (name) => column(event, "tracks", name);
  const [d0, phi, theta, qop, hitIds] = ["d0", "phi", "theta", "qop", "hit_ids"].map(of);
  const [x, y] = ["x", "y"].map((name) => column(event, "tracker_hits", name));
  if (!d0 || !phi || !theta || !qop || !hitIds || !x || !y) return null;
  const ids = column(event, "tracker_hits", "hit_id");
  const rowOf = new Map(Array.from({ length: rows(event, "tracker_hits") }, (_, row) => [Number(ids ? ids[row] : row), row]));
  const fields = [];
  for (let track = 0; track < rows(event, "tracks"); track += 1) {
    const [cos, sin] = [Math.cos(phi[track]), Math.sin(phi[track])];
    for (const id of hitIds[track] ?? []) {
      const hit = rowOf.get(Number(id));
      if (hit === undefined) continue;
      const along = x[hit] * cos + y[hit] * sin;
      const across = y[hit] * cos - x[hit] * sin - d0[track];
      const chord = Math.hypot(along, across);
      const momentum = Math.sin(theta[track]) / qop[track]; // p_T over charge
      if (chord > MIN_CHORD) fields.push(((-2 * across) / chord ** 2) * (momentum / GEV_PER_TESLA_MM));
    }
  }
  if (fields.length < MIN_HITS) return null;
  return fields.sort((a, b) => a - b)[fields.length >> 1];
}
