// Transverse momentum, pseudorapidity and azimuth.

import { column, rows } from "./tables.js";

/** η of a direction; infinite along the beam. */
export function eta(x, y, z) {
  return Math.asinh(z / Math.hypot(x, y));
}

/** A direction of unit length, from η and φ. */
export function direction(eta, phi) {
  return { x: Math.cos(phi) / Math.cosh(eta), y: Math.sin(phi) / Math.cosh(eta), z: Math.tanh(eta) };
}

/** p_T of every particle (GeV), from its own column or its momentum; null where the event has neither. */
export function particlePt(event) {
  const pt = column(event, "particles", "pt");
  if (pt) return pt;
  const px = column(event, "particles", "px");
  const py = column(event, "particles", "py");
  return px && py ? Float32Array.from(px, (value, row) => Math.hypot(value, py[row])) : null;
}

/** For every hit the row of its particle in `particles`, -1 for none; null where either is missing. */
export function particleOfHits(event) {
  const owners = column(event, "tracker_hits", "particle_id");
  const known = column(event, "particles", "particle_id");
  if (!owners || !known) return null;
  const places = new Map();
  for (let row = 0; row < known.length; row += 1) places.set(known[row], row);
  return Int32Array.from({ length: rows(event, "tracker_hits") }, (_, hit) => places.get(owners[hit]) ?? -1);
}

/** For every value of `rowsOf`, a row or -1, the value of that row of `values`, or `otherwise`. */
export function lookUp(values, rowsOf, otherwise) {
  return Float32Array.from(rowsOf, (row) => (row < 0 ? otherwise : Number(values[row])));
}

// Leptons, then hadrons and nuclei that live long enough to leave hits, by the numbering scheme of the Particle Data
// Group; what is not here is neutral, or gone before it meets the detector.
const NEGATIVE = new Set([11, 13, 15]);
const POSITIVE = new Set([211, 321, 411, 431, 521, 2212, 3222, 24]);
const NEGATIVE_BARYONS = new Set([3112, 3312, 3334]);

/** Charge in e by a code of the Particle Data Group. */
export function chargeOf(pdgId) {
  const code = Math.abs(pdgId);
  const sign = Math.sign(pdgId);
  if (NEGATIVE.has(code) || NEGATIVE_BARYONS.has(code)) return -sign;
  return POSITIVE.has(code) ? sign : 0;
}
