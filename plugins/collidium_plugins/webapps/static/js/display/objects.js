// The objects of an event, as arrays to draw, filter, list and pick. A kind of objects is
// {count, values: {pt, eta, time, volume}, …}; missing values are null.

import { fromPerigee, fromVertex, trace } from "./helix.js";
import { chargeOf, eta, lookUp, particleOfHits, particlePt } from "./kinematics.js";
import { column, rows } from "./tables.js";
import { towersOf } from "./towers.js";

// Minimum p_T of tracks that are drawn, GeV.
const MIN_PT = 0.01;

/** All objects of `event` in `detector`. */
export function objectsOf(event, detector) {
  const pt = particlePt(event);
  const owner = particleOfHits(event);
  const hits = hitsOf(event, pt, owner);
  return {
    hits,
    tracks: tracksOf(event, detector),
    particles: particlesOf(event, detector, pt, hits),
    towers: calorimeterOf(event, detector),
    jets: jetsOf(event),
  };
}

function hitsOf(event, particlePt, owner) {
  const of = (name) => column(event, "tracker_hits", name);
  const [x, y, z] = [of("x"), of("y"), of("z")];
  const count = x && y && z ? rows(event, "tracker_hits") : 0;
  const position = new Float32Array(3 * count);
  const etas = new Float32Array(count);
  for (let hit = 0; hit < count; hit += 1) {
    position.set([x[hit], y[hit], z[hit]], 3 * hit);
    etas[hit] = eta(x[hit], y[hit], z[hit]);
  }
  const values = {
    pt: particlePt && owner ? lookUp(particlePt, owner, -1) : null,
    eta: etas,
    time: of("time"),
    volume: of("volume_id"),
  };
  return { count, position, values, layer: layersOf(of("volume_id"), of("layer_id")), particle: owner, id: of("hit_id") };
}

/** Layers numbered from 0 in the order of volumes; null where hits have none. */
function layersOf(volume, layer) {
  if (!volume || !layer) return null;
  const code = Array.from(volume, (value, hit) => value * 65536 + layer[hit]);
  const places = new Map([...new Set(code)].sort((a, b) => a - b).map((value, index) => [value, index]));
  return Int32Array.from(code, (value) => places.get(value));
}

function tracksOf(event, { field, tracker }) {
  const of = (name) => column(event, "tracks", name);
  const [d0, z0, phi, theta, qop] = ["d0", "z0", "phi", "theta", "qop"].map(of);
  const complete = d0 && z0 && phi && theta && qop;
  const count = complete ? rows(event, "tracks") : 0;
  const each = (valueOf) => Float32Array.from({ length: count }, (_, track) => valueOf(track));
  const pt = each((track) => Math.sin(theta[track]) / Math.abs(qop[track]));
  const lines = Array.from({ length: count }, (_, track) =>
    pt[track] > MIN_PT
      ? trace(fromPerigee({ d0: d0[track], z0: z0[track], phi: phi[track], theta: theta[track], qop: qop[track] }, field), tracker)
      : [],
  );
  const values = { pt, eta: each((track) => -Math.log(Math.tan(theta[track] / 2))), time: null, volume: null };
  return { count, lines, values, hitIds: of("hit_ids"), particle: of("majority_particle_id") };
}

/** Charged particles with hits in the tracker, with their trajectories. */
function particlesOf(event, { field, tracker }, pt, hits) {
  const of = (name) => column(event, "particles", name);
  const [px, py, pz, vx, vy, vz] = ["px", "py", "pz", "vx", "vy", "vz"].map(of);
  if (!px || !py || !pz || !vx || !vy || !vz) return { count: 0, lines: [], values: {}, row: [] };
  const charge = of("charge") ?? Float32Array.from(of("pdg_id") ?? px, (code) => chargeOf(Number(code)));
  const left = hitsOfParticles(rows(event, "particles"), hits.particle);
  const chosen = Array.from(px.keys()).filter((row) => left[row] > 0 && charge[row] !== 0 && pt[row] > MIN_PT);
  const lines = chosen.map((row) =>
    trace(
      fromVertex({ x: vx[row], y: vy[row], z: vz[row], px: px[row], py: py[row], pz: pz[row], charge: charge[row] }, field),
      tracker,
    ),
  );
  const each = (valueOf) => Float32Array.from(chosen, valueOf);
  return {
    count: chosen.length,
    lines,
    row: chosen,
    hits: chosen.map((row) => left[row]),
    values: {
      pt: each((row) => pt[row]),
      eta: each((row) => eta(px[row], py[row], pz[row])),
      time: of("time") ? each((row) => of("time")[row]) : null,
      volume: null,
    },
  };
}

/** The number of hits of each particle. */
function hitsOfParticles(count, particle) {
  const left = new Uint32Array(count);
  if (particle) for (const row of particle) if (row >= 0) left[row] += 1;
  return left;
}

function calorimeterOf(event, { calorimeter }) {
  const bins = towersOf(event, calorimeter);
  return {
    count: bins.length,
    bins,
    values: { pt: null, eta: Float32Array.from(bins, (bin) => bin.eta), time: null, volume: null },
  };
}

function jetsOf(event) {
  const of = (name) => column(event, "jets", name);
  const [pt, etas, phi] = [of("pt"), of("eta"), of("phi")];
  if (!pt || !etas || !phi) return { count: 0, values: {} };
  return { count: rows(event, "jets"), phi, mass: of("mass"), flavour: of("flavour"), values: { pt, eta: etas, time: null, volume: null } };
}
