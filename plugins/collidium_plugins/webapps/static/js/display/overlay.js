// The overlay of the picture: axes with numbers, the scale, and marks of the picked object.

import { INK } from "./colours.js";
import { segments } from "./projection.js";

const FONT = "12px system-ui, sans-serif";
const HALF_METRE = 500; // mm

/** Draw over `canvas`, which has `size` {width, height, ratio}. `marks`: {points: [[x, y, z, side]], lines}, in mm. */
export function drawOverlay(context, { size, view, ground, project, marks, extent }) {
  const ink = INK[ground];
  context.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
  context.font = FONT;
  context.textBaseline = "middle";
  if (view === "3d") axes(context, project, ink, extent);
  else ruler(context, project, ink, size, view);
  for (const line of marks.lines) polyline(context, project, line, ink);
  for (const point of marks.points) ring(context, project(...point), ink);
}

/** Axes of half a metre from the origin, and the beam. */
function axes(context, project, ink, { length }) {
  const ends = { x: [HALF_METRE, 0, 0], y: [0, HALF_METRE, 0], z: [0, 0, 1.3 * length] };
  const origin = project(0, 0, 0, 1);
  for (const [name, end] of Object.entries(ends)) {
    const tip = project(...end, 1);
    if (!origin || !tip) continue;
    if (name !== "z") stroke(context, [origin, tip], ink.faint, 1);
    context.fillStyle = ink.faint;
    context.fillText(name, tip.x + 4, tip.y);
  }
  context.fillText("x, y: 0.5 m; z: along the beam", 10, 16);
}

/** Ticks along the lower and the left edge. */
function ruler(context, project, ink, size, view) {
  const origin = project(0, 0, 0, 1);
  const unit = view === "rz" ? project(0, 0, 1, 1) : project(1, 0, 0, 1);
  const pixels = unit.x - origin.x;
  const step = niceStep(90 / pixels);
  context.fillStyle = ink.faint;
  const names = view === "rz" ? ["z", "r"] : ["x", "y"];
  ticks(origin.x, pixels, step, size.width).forEach(({ at, value }) => {
    stroke(context, [{ x: at, y: size.height }, { x: at, y: size.height - 5 }], ink.faint, 1);
    context.textAlign = "center";
    write(context, metres(value), at, size.height - 13, ink);
  });
  ticks(origin.y, -pixels, step, size.height).forEach(({ at, value }) => {
    stroke(context, [{ x: 0, y: at }, { x: 5, y: at }], ink.faint, 1);
    context.textAlign = "left";
    if (at < size.height - 30) write(context, metres(value), 8, at, ink);
  });
  context.fillStyle = ink.text;
  context.textAlign = "right";
  write(context, names[0], size.width - 8, size.height - 28, ink);
  context.textAlign = "left";
  write(context, view === "rz" ? "r (up: φ > 0)" : names[1], 8, 14, ink);
}

/** Text with an outline, legible on any background. */
function write(context, text, x, y, ink) {
  context.strokeStyle = ink.ground;
  context.lineWidth = 4;
  context.strokeText(text, x, y);
  context.fillText(text, x, y);
}

/** Where multiples of `step` mm lie between 0 and `end` pixels. */
export function ticks(origin, pixels, step, end) {
  const bounds = [(0 - origin) / pixels / step, (end - origin) / pixels / step].sort((a, b) => a - b);
  const found = [];
  for (let tick = Math.ceil(bounds[0]); tick <= bounds[1]; tick += 1) {
    found.push({ at: origin + tick * step * pixels, value: tick * step });
  }
  return found;
}

/** The smallest of 1, 2, 5, 10, … that is not below `minimum`. */
export function niceStep(minimum) {
  const power = 10 ** Math.floor(Math.log10(minimum));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= minimum * (1 - 1e-9));
}

function metres(millimetres) {
  const rounded = Number(millimetres.toPrecision(3));
  const text = Math.abs(rounded) >= 100 || rounded === 0 ? `${rounded / 1000} m` : `${rounded} mm`;
  return text.replace("-", "−");
}

/** A line with an outline. */
function polyline(context, project, line, ink) {
  const pieces = segments(line, project);
  for (const piece of pieces) stroke(context, piece, ink.ground, 6);
  for (const piece of pieces) stroke(context, piece, ink.mark, 3);
}

function ring(context, point, ink) {
  if (!point) return;
  context.strokeStyle = ink.mark;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(point.x, point.y, 5.5, 0, 2 * Math.PI);
  context.stroke();
}

function stroke(context, points, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.lineCap = "round";
  context.beginPath();
  points.forEach(({ x, y }, place) => (place ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}
