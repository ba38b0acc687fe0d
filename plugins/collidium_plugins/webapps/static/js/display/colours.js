// Colours that people who see colours differently can tell apart, on dark and on light ground.

// Paul Tol's "light" and "muted" schemes, https://personal.sron.nl/~pault/ : qualitative, safe for colour blindness.
const QUALITATIVE = {
  dark: ["#77aadd", "#ee8866", "#44bb99", "#eedd88", "#ffaabb", "#99ddff", "#bbcc33", "#aaaa00"],
  light: ["#332288", "#cc6677", "#117733", "#999933", "#882255", "#0077bb", "#44aa99", "#aa4499"],
};
// Viridis (S. van der Walt, N. Smith; CC0) in nine steps; each ground uses the part that stands out on it.
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const PART = { dark: [0.25, 1], light: [0, 0.85] };
export const INK = {
  dark: { ground: "#0b0f14", text: "#e6edf3", faint: "#93a1b0", line: "#6f8296", unknown: "#7d8894", em: "#5fd38d", had: "#ff9e64", jet: "#ffd166", mark: "#ffffff" },
  light: { ground: "#ffffff", text: "#14202b", faint: "#5a6775", line: "#8a99a8", unknown: "#7d8894", em: "#1a7f45", had: "#c2410c", jet: "#8a6100", mark: "#000000" },
};

/** Colour `index` of a list that starts again when it is at its end; -1: unknown. */
export function qualitative(index, ground) {
  const colours = QUALITATIVE[ground];
  return index < 0 ? INK[ground].unknown : colours[index % colours.length];
}

/** The colour of `fraction`, 0 to 1, as [red, green, blue] of 0 to 255. */
export function sequential(fraction, ground) {
  const [low, high] = PART[ground];
  const place = (low + (high - low) * Math.min(Math.max(fraction, 0), 1)) * (VIRIDIS.length - 1);
  const below = Math.min(Math.floor(place), VIRIDIS.length - 2);
  const [from, to] = [rgb(VIRIDIS[below]), rgb(VIRIDIS[below + 1])];
  return from.map((value, channel) => Math.round(value + (to[channel] - value) * (place - below)));
}

/** [red, green, blue] of 0 to 255. */
export function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}
