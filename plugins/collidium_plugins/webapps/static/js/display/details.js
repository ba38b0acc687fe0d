// The properties of one object: [symbol or name, value, unit].

import { column } from "./tables.js";

const FLAVOURS = { 0: "light", 4: "charm", 5: "bottom" };

/** {title, facts} of the object `pick` points to, or null where there is no such object. */
export function describe(event, objects, pick) {
  const kind = { hit: "hits", track: "tracks", particle: "particles", tower: "towers", jet: "jets" }[pick.kind];
  if (!(pick.row < objects[kind].count)) return null;
  const [title, facts] = DESCRIBED[pick.kind](event, objects, pick.row);
  return { title, facts: facts.filter(([, value]) => value !== null && value !== undefined) };
}

const DESCRIBED = { hit, track, particle, tower, jet };

function hit(event, { hits }, row) {
  const of = (name) => column(event, "tracker_hits", name)?.[row];
  const [x, y, z] = [of("x"), of("y"), of("z")];
  return [
    `Hit ${of("hit_id") ?? row}`,
    [
      ["x", x, "mm"],
      ["y", y, "mm"],
      ["z", z, "mm"],
      ["r", Math.hypot(x, y), "mm"],
      ["phi", Math.atan2(y, x), "rad"],
      ["eta", hits.values.eta[row], ""],
      ["time", of("time"), "ns"],
      ["volume", of("volume_id"), ""],
      ["layer", of("layer_id"), ""],
      ["surface", of("surface_id"), ""],
      ...particleFacts(event, hits.particle?.[row] ?? -1),
    ],
  ];
}

function track(event, { tracks }, row) {
  const of = (name) => column(event, "tracks", name)?.[row];
  return [
    `Track ${of("track_id") ?? row}`,
    [
      ["pt", tracks.values.pt[row], "GeV"],
      ["eta", tracks.values.eta[row], ""],
      ["phi", of("phi"), "rad"],
      ["charge", Math.sign(of("qop")), "e"],
      ["d0", of("d0"), "mm"],
      ["z0", of("z0"), "mm"],
      ["hits", tracks.hitIds?.[row]?.length, ""],
      ["majority particle", of("majority_particle_id"), ""],
      ...particleFacts(event, rowOfParticle(event, of("majority_particle_id"))).slice(1),
    ],
  ];
}

function particle(event, { particles }, row) {
  const place = particles.row[row];
  const of = (name) => column(event, "particles", name)?.[place];
  return [
    `Particle ${of("particle_id") ?? place}`,
    [
      ["PDG id", of("pdg_id"), ""],
      ["pt", particles.values.pt[row], "GeV"],
      ["eta", particles.values.eta[row], ""],
      ["phi", Math.atan2(of("py"), of("px")), "rad"],
      ["energy", of("energy"), "GeV"],
      ["charge", of("charge"), "e"],
      ["vertex x", of("vx"), "mm"],
      ["vertex y", of("vy"), "mm"],
      ["vertex z", of("vz"), "mm"],
      ["time", of("time"), "ns"],
      ["hits", particles.hits[row], ""],
      ["collision", of("vertex_primary"), ""],
    ],
  ];
}

function tower(event, { towers }, row) {
  const bin = towers.bins[row];
  return [
    bin.kind === "em" ? "Tower, electromagnetic" : "Tower, hadronic",
    [
      ["transverse energy", bin.transverse, "GeV, as deposited"],
      ["energy", bin.energy, "GeV, as deposited"],
      ["eta", bin.eta, ""],
      ["phi", bin.phi, "rad"],
      ["cells", bin.cells, ""],
    ],
  ];
}

function jet(event, { jets }, row) {
  return [
    `Jet ${column(event, "jets", "jet_id")?.[row] ?? row}`,
    [
      ["pt", jets.values.pt[row], "GeV"],
      ["eta", jets.values.eta[row], ""],
      ["phi", jets.phi[row], "rad"],
      ["mass", jets.mass?.[row], "GeV"],
      ["constituents", column(event, "jets", "constituents")?.[row]?.length, ""],
      ["flavour", jets.flavour ? (FLAVOURS[jets.flavour[row]] ?? jets.flavour[row]) : null, ""],
    ],
  ];
}

function particleFacts(event, row) {
  if (row < 0) return [];
  const of = (name) => column(event, "particles", name)?.[row];
  return [
    ["particle", of("particle_id"), ""],
    ["PDG id", of("pdg_id"), ""],
    ["particle’s pT", of("pt") ?? (of("px") === undefined ? null : Math.hypot(of("px"), of("py"))), "GeV"],
  ];
}

function rowOfParticle(event, id) {
  const known = column(event, "particles", "particle_id");
  return known && id !== undefined ? known.indexOf(id) : -1;
}
