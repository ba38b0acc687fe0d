// Assigns colours to all objects.

import { INK, qualitative } from "./colours.js";
import { tally } from "./filters.js";
import { byKind, byNumber, plain } from "./scales.js";

const MATCHES = ["in a track of its particle", "in a track of another one", "in no track", "noise in a track"];

/** Ways of colouring that this event supports. */
export function colourings({ hits, tracks }, comparison) {
  return [
    ...(hits.values.volume ? ["volume"] : []),
    ...(hits.layer ? ["layer"] : []),
    ...(hits.particle ? ["particle"] : []),
    ...(hits.values.pt || tracks.count ? ["pt"] : []),
    ...(hits.values.time ? ["time"] : []),
    ...(comparison ? ["match"] : []),
  ];
}

/** {layers: Map from name to colours, legend} of `objects` coloured by `colour`. */
export function paint(objects, colour, { ground, detector, comparison }) {
  const hits = HITS[colour]?.(objects.hits, { ground, detector, comparison }) ?? plain(objects.hits.count, INK[ground].text);
  const layers = new Map([
    ["hits", hits.colours],
    ["tracks", lines(objects.tracks, colour, ground, INK[ground].text).colours],
    ["particles", lines(objects.particles, colour, ground, INK[ground].faint).colours],
    ["towers", towers(objects.towers, ground)],
    ["jets", plain(objects.jets.count, INK[ground].jet).colours],
  ]);
  const legend = hits.legend ?? lines(objects.tracks, colour, ground, INK[ground].text).legend;
  return { layers, legend };
}

const HITS = {
  volume: ({ values }, { ground, detector }) => values.volume && byPart(values.volume, detector.volumes, ground),
  layer: ({ layer }, { ground }) => layer && byNumber(layer, { ground, unit: "" }),
  particle: ({ particle }, { ground }) => particle && byParticle(particle, ground),
  pt: ({ values }, { ground }) => values.pt && byNumber(values.pt, { ground, unit: "GeV", logarithmic: true }),
  time: ({ values }, { ground }) => values.time && byNumber(values.time, { ground, unit: "ns" }),
  match: (_, { ground, comparison }) =>
    comparison && byKind(comparison.kinds, { ground, keys: [0, 1, 2, 3], nameOf: (kind) => MATCHES[kind] }),
};

/** Endcaps have the colour of their barrel: their position distinguishes them, and colours are few. */
function byPart(volumes, names, ground) {
  const partOf = new Map([...tally(volumes).keys()].map((volume) => [volume, (names[volume] ?? `volume ${volume}`).split(",")[0]]));
  const parts = [...new Set(partOf.values())];
  const places = new Map([...partOf].map(([volume, part]) => [volume, parts.indexOf(part)]));
  const keys = [...parts.keys()];
  return byKind(Array.from(volumes, (volume) => places.get(volume)), { ground, keys, nameOf: (place) => parts[place] });
}

/** Colours repeat, as there are more particles than colours. */
function byParticle(particle, ground) {
  const colours = byKind(particle, { ground, keys: [...tally(particle).keys()].filter((row) => row >= 0), nameOf: String });
  const entries = [
    { name: "a colour for each particle; colours repeat", colour: qualitative(0, ground) },
    { name: "noise, or no known particle", colour: INK[ground].unknown },
  ];
  return { ...colours, legend: { kind: "list", entries, more: 0 } };
}

function lines({ count, values }, colour, ground, otherwise) {
  const coloured = colour === "pt" && count > 0;
  return coloured ? byNumber(values.pt, { ground, unit: "GeV", logarithmic: true }) : plain(count, otherwise);
}

function towers({ bins }, ground) {
  const colours = new Uint8Array(3 * bins.length);
  const of = { em: plain(1, INK[ground].em).colours, had: plain(1, INK[ground].had).colours };
  bins.forEach(({ kind }, row) => colours.set(of[kind], 3 * row));
  return colours;
}
