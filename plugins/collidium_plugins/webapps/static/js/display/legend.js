// The legend of the colours.

import { INK, sequential } from "./colours.js";
import { element, formatted } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";

/** Nodes of a legend. */
export function legendNodes(legend, ground) {
  if (!legend) return [];
  return legend.kind === "scale" ? scale(legend, ground) : list(legend);
}

/** Entries of calorimeters and jets, with their colours and shapes. */
export function objectKeys({ towers, jets }, ground) {
  const ink = INK[ground];
  const keys = [];
  if (towers.count) {
    keys.push(key(swatch(ink.em, "rect", { x: 2.5, width: 5, height: 10 }), "electromagnetic towers"));
    keys.push(key(swatch(ink.had, "path", { d: "M5 0 9 10H1Z" }), "hadronic towers"));
  }
  if (jets.count) keys.push(key(swatch(ink.jet, "path", { d: "M1 0H9L5 10Z" }), "jets"));
  return keys;
}

function list({ entries, more }) {
  const named = entries.map(({ name, colour }) => key(swatch(colour, "circle", { cx: 5, cy: 5, r: 4 }), name));
  return more ? [...named, key(`and ${more} more; colours repeat`)] : named;
}

function key(...parts) {
  return element("span", { class: "key" }, ...parts);
}

function swatch(colour, shape, place) {
  const svg = drawn("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" });
  svg.append(drawn(shape, { ...place, fill: colour }));
  return svg;
}

function scale({ low, high, unit, logarithmic }, ground) {
  const svg = drawn("svg", { viewBox: "0 0 128 8", class: "scale", preserveAspectRatio: "none", "aria-hidden": "true" });
  for (let step = 0; step < 64; step += 1) {
    svg.append(drawn("rect", { x: 2 * step, y: 0, width: 2.1, height: 8, fill: `rgb(${sequential(step / 63, ground)})` }));
  }
  const words = `${formatted(high, 3)} ${unit}${logarithmic ? " (logarithmic)" : ""}`;
  return [key(formatted(low, 3), svg, words)];
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
