// Finds the shown object that is nearest to a point on the screen.

import { segments, sideOf } from "./projection.js";

/**
 * {kind, row} of the object nearest to `point` (pixels), at most `reach` pixels away; null for none. `layers` are
 * what is shown: {kind, shown, …} with `position` for points or `lines`. Hits lie upon lines, so a line wins only where no hit is near.
 */
export function nearest(point, layers, project, reach) {
  for (const layer of layers) {
    const found = layer.position ? nearestPoint(point, layer, project, reach) : nearestLine(point, layer, project, reach);
    if (found !== null) return { kind: layer.kind, row: found };
  }
  return null;
}

function nearestPoint(point, { position, shown }, project, reach) {
  let [best, row] = [reach, null];
  for (let at = 0; at < shown.length; at += 1) {
    if (!shown[at]) continue;
    const [x, y, z] = [position[3 * at], position[3 * at + 1], position[3 * at + 2]];
    const seen = project(x, y, z, sideOf(y));
    const away = seen ? Math.hypot(seen.x - point.x, seen.y - point.y) : Infinity;
    if (away < best) [best, row] = [away, at];
  }
  return row;
}

function nearestLine(point, { lines, shown }, project, reach) {
  let [best, row] = [reach, null];
  lines.forEach((line, at) => {
    if (!shown[at]) return;
    for (const [from, to] of segments(line, project)) {
      const away = distance(point, from, to);
      if (away < best) [best, row] = [away, at];
    }
  });
  return row;
}

/** From `point` to the line between `a` and `b`. */
export function distance(point, a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = dx * dx + dy * dy;
  const along = length === 0 ? 0 : ((point.x - a.x) * dx + (point.y - a.y) * dy) / length;
  const at = Math.min(Math.max(along, 0), 1);
  return Math.hypot(a.x + at * dx - point.x, a.y + at * dy - point.y);
}
