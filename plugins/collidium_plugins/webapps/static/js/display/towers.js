// Towers: calorimeter cells summed in bins of η and φ.

import { eta } from "./kinematics.js";
import { column, rows } from "./tables.js";

export const ETA_BINS = 60;
export const ETA_RANGE = 3;
export const PHI_BINS = 64;
// Codes of column `detector` from here on are hadronic.
const FIRST_HADRONIC = 12;
// Where cells have no code: what lies this far outside of the faces (mm) is hadronic; the electromagnetic
// calorimeter of the Open Data Detector is 250 mm deep and stands 50 mm behind its face at most.
const ELECTROMAGNETIC_DEPTH = 350;
// Minimum fraction of the largest tower's energy, and maximum number of drawn towers: others would only
// hide the tracker.
const MIN_SHARE = 0.01;
const MAX_TOWERS = 800;

/**
 * The largest bins first, each {kind: "em" | "had", eta, phi, energy, transverse (GeV), cells}. `faces` are the radius
 * and the half length at which the calorimeters begin, mm. Energy is what the cells hold, in their own scale.
 */
export function towersOf(event, faces) {
  const [x, y, z, energy, code] = ["x", "y", "z", "total_energy", "detector"].map((name) =>
    column(event, "calo_hits", name),
  );
  if (!x || !y || !z || !energy) return [];
  const bins = new Map();
  for (let cell = 0; cell < rows(event, "calo_hits"); cell += 1) {
    const place = eta(x[cell], y[cell], z[cell]);
    if (!(Math.abs(place) < ETA_RANGE)) continue;
    const radius = Math.hypot(x[cell], y[cell]);
    const hadronic = code ? code[cell] >= FIRST_HADRONIC : isDeep(radius, Math.abs(z[cell]), faces);
    add(bins, hadronic ? "had" : "em", place, Math.atan2(y[cell], x[cell]), energy[cell]);
  }
  const ordered = [...bins.values()]
    .map((bin) => ({ ...bin, transverse: bin.energy / Math.cosh(bin.eta) }))
    .sort((a, b) => b.transverse - a.transverse);
  return ordered.slice(0, MAX_TOWERS).filter((bin) => bin.transverse >= MIN_SHARE * ordered[0].transverse);
}

function isDeep(radius, z, faces) {
  return radius > faces.radius + ELECTROMAGNETIC_DEPTH || z > faces.length + ELECTROMAGNETIC_DEPTH;
}

function add(bins, kind, eta, phi, energy) {
  const row = Math.floor(((eta + ETA_RANGE) / (2 * ETA_RANGE)) * ETA_BINS);
  const place = Math.min(Math.floor(((phi + Math.PI) / (2 * Math.PI)) * PHI_BINS), PHI_BINS - 1);
  const key = `${kind} ${row} ${place}`;
  if (!bins.has(key)) bins.set(key, { kind, ...centre(row, place), energy: 0, cells: 0 });
  const bin = bins.get(key);
  bin.energy += energy;
  bin.cells += 1;
}

function centre(row, place) {
  return {
    eta: ((row + 0.5) / ETA_BINS) * 2 * ETA_RANGE - ETA_RANGE,
    phi: ((place + 0.5) / PHI_BINS) * 2 * Math.PI - Math.PI,
  };
}
