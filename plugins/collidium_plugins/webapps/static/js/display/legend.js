// What the colours mean, beside the picture.

import { sequential } from "./colours.js";
import { element, told } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";

/** Nodes of a legend. */
export function legendNodes(legend, ground) {
  if (!legend) return [];
  return legend.kind === "scale" ? scale(legend, ground) : list(legend);
}

function list({ entries, more }) {
  const named = entries.map(({ name, colour }) => element("span", { class: "key" }, swatch(colour), name));
  return more ? [...named, element("span", { class: "key" }, `and ${more} more; colours repeat`)] : named;
}

function swatch(colour) {
  const svg = drawn("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" });
  svg.append(drawn("circle", { cx: 5, cy: 5, r: 4, fill: colour }));
  return svg;
}

function scale({ low, high, unit, logarithmic }, ground) {
  const svg = drawn("svg", { viewBox: "0 0 128 8", class: "scale", preserveAspectRatio: "none", "aria-hidden": "true" });
  for (let step = 0; step < 64; step += 1) {
    svg.append(drawn("rect", { x: 2 * step, y: 0, width: 2.1, height: 8, fill: `rgb(${sequential(step / 63, ground)})` }));
  }
  const words = `${told(high, 3)} ${unit}${logarithmic ? " (logarithmic)" : ""}`;
  return [element("span", { class: "key" }, told(low, 3), svg, words)];
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
