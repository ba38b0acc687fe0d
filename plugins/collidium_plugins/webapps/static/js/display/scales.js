// Ways of colouring: colours for the rows of a table, and a legend.

import { COLOURS_APART, INK, qualitative, rgb, sequential } from "./colours.js";

/**
 * `numbers` in colours of a scale. Returns {colours: Uint8Array (rows × 3), legend}; the legend is
 * {kind: "scale", low, high, unit, logarithmic}. What is not finite, or missing (below 0), is grey.
 */
export function byNumber(numbers, { ground, unit, logarithmic = false }) {
  const scaled = logarithmic ? Math.log10 : (value) => value;
  const known = (value) => Number.isFinite(value) && (!logarithmic || value > 0);
  const [low, high] = range(numbers, known);
  const [from, to] = [scaled(low), scaled(high)];
  const colours = painted(numbers.length, (row) =>
    known(numbers[row])
      ? sequential(to > from ? (scaled(numbers[row]) - from) / (to - from) : 0.5, ground)
      : rgb(INK[ground].unknown),
  );
  return { colours, legend: { kind: "scale", low, high, unit, logarithmic } };
}

/**
 * Whole numbers, one colour each as long as there are colours, in the order `keys`. The legend is
 * {kind: "list", entries: [{name, colour}], more}; -1 has no colour of its own.
 */
export function byKind(values, { ground, keys, nameOf }) {
  const places = new Map(keys.map((key, index) => [key, index]));
  const colours = painted(values.length, (row) => rgb(qualitative(places.get(values[row]) ?? -1, ground)));
  const entries = keys.slice(0, COLOURS_APART).map((key, index) => ({ name: nameOf(key), colour: qualitative(index, ground) }));
  return { colours, legend: { kind: "list", entries, more: Math.max(keys.length - COLOURS_APART, 0) } };
}

/** One colour for everything. */
export function plain(count, colour) {
  const one = rgb(colour);
  return { colours: painted(count, () => one), legend: null };
}

function painted(count, colourOf) {
  const colours = new Uint8Array(3 * count);
  for (let row = 0; row < count; row += 1) colours.set(colourOf(row), 3 * row);
  return colours;
}

function range(numbers, known) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of numbers) {
    if (!known(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}
