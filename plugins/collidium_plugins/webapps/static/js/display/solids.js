// Triangles of towers, jets and surfaces of the detector. A solid is
// {position, shade, side, object}: per corner, three corners a triangle; `object` is the row it belongs to.

import { direction } from "./kinematics.js";
import { sideOf } from "./projection.js";
import { ETA_BINS, ETA_RANGE, PHI_BINS } from "./towers.js";

// The longest tower, mm.
const TALLEST = 1200;
// Jets are drawn as cones of this half angle in η and φ, which is how they are clustered.
const JET_RADIUS = 0.4;

/** Collects triangles. */
class Corners {
  position = [];
  shade = [];
  side = [];
  object = [];

  triangle(points, { shade, side, object }) {
    for (const { x, y, z } of points) {
      this.position.push(x, y, z);
      this.shade.push(shade);
      this.side.push(side);
      this.object.push(object);
    }
  }

  quad([a, b, c, d], options) {
    this.triangle([a, b, c], options);
    this.triangle([a, c, d], options);
  }
}

/**
 * Towers on the faces of the calorimeter, as long as their transverse energy: electromagnetic ones are bars, hadronic ones are
 * spikes on top of them. Also returns their axes, lines of two
 * points, by row.
 */
export function towerSolids(bins, faces) {
  const corners = new Corners();
  const scale = TALLEST / Math.max(...bins.map(({ transverse }) => transverse), 1e-9);
  const electromagnetic = new Map(bins.filter(({ kind }) => kind === "em").map((bin) => [key(bin), bin.transverse]));
  const axes = bins.map((bin, object) => {
    const begin = faceDistance(bin.eta, faces) + (bin.kind === "had" ? (electromagnetic.get(key(bin)) ?? 0) * scale : 0);
    const end = begin + bin.transverse * scale;
    tower(corners, bin, begin, end, object);
    return axis(bin.eta, bin.phi, begin, end);
  });
  return { ...corners, axes };
}

function key({ eta, phi }) {
  return `${eta} ${phi}`;
}

/** Distance from the origin to the calorimeter's face in direction η. */
function faceDistance(eta, { radius, length }) {
  return Math.min(radius * Math.cosh(eta), length / Math.max(Math.abs(Math.tanh(eta)), 1e-9));
}

function tower(corners, { kind, eta, phi }, begin, end, object) {
  const [wide, high] = [(0.9 * ETA_RANGE) / ETA_BINS, (0.9 * Math.PI) / PHI_BINS];
  const square = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([a, b]) => direction(eta + a * wide, phi + b * high));
  const base = square.map((along) => times(along, begin));
  const tip = kind === "em" ? square.map((along) => times(along, end)) : Array(4).fill(times(direction(eta, phi), end));
  const options = { side: sideOf(Math.sin(phi)), object };
  for (let face = 0; face < 4; face += 1) {
    const next = (face + 1) % 4;
    corners.quad([base[face], base[next], tip[next], tip[face]], { ...options, shade: 0.7 + 0.1 * face });
  }
  if (kind === "em") corners.quad(tip, { ...options, shade: 1 });
}

/** Jets as cones from the origin to the calorimeter, and their axes. */
export function jetSolids(jets, faces) {
  const corners = new Corners();
  const parts = 40;
  for (let object = 0; object < jets.count; object += 1) {
    const [eta, phi] = [jets.values.eta[object], jets.phi[object]];
    const length = faceDistance(eta, faces);
    const rim = Array.from({ length: parts }, (_, part) => {
      const angle = (2 * Math.PI * part) / parts;
      return times(direction(eta + JET_RADIUS * Math.cos(angle), phi + JET_RADIUS * Math.sin(angle)), length);
    });
    for (let part = 0; part < parts; part += 1) {
      const points = [{ x: 0, y: 0, z: 0 }, rim[part], rim[(part + 1) % parts]];
      corners.triangle(points, { side: sideOf(Math.sin(phi)), object, shade: 0.8 + 0.2 * Math.cos((2 * Math.PI * part) / parts) });
    }
  }
  const axes = Array.from({ length: jets.count }, (_, row) => {
    const eta = jets.values.eta[row];
    return axis(eta, jets.phi[row], 0, faceDistance(eta, faces));
  });
  return { ...corners, axes };
}

/** A line from `begin` to `end` mm from the origin. */
function axis(eta, phi, begin, end) {
  const along = direction(eta, phi);
  return [begin, end].flatMap((distance) => Object.values(times(along, distance)));
}

function times({ x, y, z }, factor) {
  return { x: x * factor, y: y * factor, z: z * factor };
}
