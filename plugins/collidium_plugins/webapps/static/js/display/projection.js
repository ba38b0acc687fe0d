// Projects points to the screen as shaders.js does, for picking and the overlay.

/** Where a point is placed in `view`: [x, y, z] in mm. `side` is that of what the point belongs to. */
export function placed(view, x, y, z, side) {
  if (view === "xy") return [x, y, 0];
  if (view === "rz") return [z, side * Math.hypot(x, y), 0];
  return [x, y, z];
}

/** The half of the r–z view in which an object at `y` is drawn: 1 above the beam (φ from 0 to π) or -1 below. */
export function sideOf(y) {
  return y < 0 ? -1 : 1;
}

/**
 * The segments of a polyline on the screen, [from, to] in pixels. In r–z a line that passes from one half to the other
 * is in two pieces, as its hits are.
 */
export function segments(line, project) {
  const found = [];
  for (let at = 0; at + 3 < line.length; at += 3) {
    const side = sideOf(line[at + 1] + line[at + 4]);
    const ends = [project(line[at], line[at + 1], line[at + 2], side), project(line[at + 3], line[at + 4], line[at + 5], side)];
    if (ends[0] && ends[1]) found.push(ends);
  }
  return found;
}

/** A function from points (mm) to {x, y} in pixels, or null behind the camera. */
export function projector(matrix, view, { width, height }) {
  return (x, y, z, side) => {
    const [a, b, c] = placed(view, x, y, z, side);
    const w = matrix[3] * a + matrix[7] * b + matrix[11] * c + matrix[15];
    if (w <= 0) return null;
    const across = (matrix[0] * a + matrix[4] * b + matrix[8] * c + matrix[12]) / w;
    const up = (matrix[1] * a + matrix[5] * b + matrix[9] * c + matrix[13]) / w;
    return { x: ((across + 1) / 2) * width, y: ((1 - up) / 2) * height };
  };
}
