// Colours that are distinguishable with colour blindness, on dark and light backgrounds.

// Nine for hits, of which the first three are of the parts of the Open Data Detector; chosen together with those of towers (INK) by a search for
// the largest minimum distance in OKLab, also as protanopes, deuteranopes and tritanopes see them. Each stands out from
// its ground by 3 : 1 at least.
const QUALITATIVE = {
  dark: ["#0099ff", "#ddbb00", "#ff44cc", "#99ff55", "#ff1100", "#aabbff", "#6644ff", "#22ddbb", "#aa33bb"],
  light: ["#0088ff", "#444400", "#ee22dd", "#bb1166", "#114499", "#7700cc", "#ff5555", "#662255", "#0000ff"],
};
/** How many colours there are before they repeat. */
export const COLOURS_APART = QUALITATIVE.dark.length;
// Viridis (S. van der Walt, N. Smith; CC0) in nine steps; each ground uses the part that stands out on it.
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const PART = { dark: [0.25, 1], light: [0, 0.85] };
export const INK = {
  dark: { ground: "#0b0f14", text: "#e6edf3", faint: "#93a1b0", line: "#6f8296", unknown: "#7d8894", em: "#448811", had: "#ee8866", jet: "#ffd166", mark: "#ffffff" },
  light: { ground: "#ffffff", text: "#14202b", faint: "#5a6775", line: "#8a99a8", unknown: "#7d8894", em: "#449922", had: "#995500", jet: "#8a6100", mark: "#000000" },
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
