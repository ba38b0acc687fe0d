// Trajectories of charged particles in a field along z: mm, GeV, tesla, and charges in e.

// GeV per tesla, mm and elementary charge: the speed of light as 0.299792458 m/ns, in mm.
export const GEV_PER_TESLA_MM = 0.299792458e-3;

/**
 * A helix from a perigee as the tables have it: d0 and z0 (mm), phi and theta (rad), qop (1/GeV).
 * The perigee is the point nearest to the beam line; d0 is positive on its left, seen along the momentum.
 */
export function fromPerigee({ d0, z0, phi, theta, qop }, field) {
  return helix({
    x: -d0 * Math.sin(phi),
    y: d0 * Math.cos(phi),
    z: z0,
    phi,
    cotTheta: 1 / Math.tan(theta),
    pt: Math.sin(theta) / Math.abs(qop),
    charge: Math.sign(qop),
  }, field);
}

/** A helix from a vertex (mm) and a momentum (GeV). */
export function fromVertex({ x, y, z, px, py, pz, charge }, field) {
  const pt = Math.hypot(px, py);
  return helix({ x, y, z, phi: Math.atan2(py, px), cotTheta: pz / pt, pt, charge }, field);
}

/**
 * Curvature κ = dφ/ds = −q·0.2998·B / pT, s along the transverse arc: positive charges turn clockwise in a field
 * along +z, which the Lorentz force q v×B says. pT = 0.2998 B R is in R. Fruehwirth, R.K. Bock et al., "Data
 * Analysis Techniques for High-Energy Physics", 2nd edition, section 3.
 */
function helix(start, field) {
  return { ...start, curvature: (-start.charge * GEV_PER_TESLA_MM * field) / start.pt };
}

/** The point after an arc of `s` mm in the transverse plane. */
export function at({ x, y, z, phi, cotTheta, curvature }, s) {
  const turned = phi + curvature * s;
  const straight = Math.abs(curvature * s) < 1e-9;
  return {
    x: straight ? x + s * Math.cos(phi) : x + (Math.sin(turned) - Math.sin(phi)) / curvature,
    y: straight ? y + s * Math.sin(phi) : y - (Math.cos(turned) - Math.cos(phi)) / curvature,
    z: z + s * cotTheta,
  };
}

/**
 * Points along the helix until it leaves the cylinder of `radius` and half length `length` (mm), after one turn at
 * the latest; x, y, z one after another, shape (points × 3). Nothing for what starts outside.
 */
export function trace(helix, bounds) {
  const { cotTheta, curvature, z } = helix;
  const turn = curvature === 0 ? Infinity : (2 * Math.PI) / Math.abs(curvature);
  const along = cotTheta === 0 ? Infinity : (bounds.length - Math.sign(cotTheta) * z) / Math.abs(cotTheta);
  const end = Math.min(turn, along, Math.PI * bounds.radius);
  const inside = (s) => transverse(at(helix, s)) <= bounds.radius;
  if (!(end > 0) || !inside(0)) return [];
  const step = stepOf(curvature, end);
  const points = [];
  let last = 0;
  for (let s = 0; s < end && inside(s); s += step) {
    push(points, at(helix, s));
    last = s;
  }
  push(points, at(helix, border(inside, last, Math.min(last + step, end))));
  return points;
}

function push(points, { x, y, z }) {
  points.push(x, y, z);
}

function transverse({ x, y }) {
  return Math.hypot(x, y);
}

/** The largest arc inside, by bisection between `low` (inside) and `high`, to 0.01 mm. */
function border(inside, low, high) {
  if (inside(high)) return high;
  while (high - low > 0.01) {
    const middle = (low + high) / 2;
    if (inside(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** A step whose chord deviates at most 0.5 mm from the arc, and at most an eighth of the length. */
function stepOf(curvature, end) {
  const sagitta = 0.5;
  const chord = curvature === 0 ? Infinity : 2 * Math.sqrt((2 * sagitta) / Math.abs(curvature));
  return Math.max(Math.min(chord, end / 8), 1e-3);
}
