// Compares a submission's tracks with the truth of one event. These are no scores, which only the server computes.

export const OWN = 0;
export const OTHER = 1;
export const LEFT_OUT = 2;
export const NOISE = 3;

/**
 * For hits with ids `hitIds` of particles `particle` (rows of the particles' table, -1 for noise) and `tracks`, a Map
 * from hit id to track id (-1: none):
 * `kinds`, one of OWN, OTHER, LEFT_OUT, NOISE for each hit, and `facts`, counts.
 *
 * A track's particle is the one with most of its hits (the lesser row where two have as many), and the track's purity
 * is that particle's share of its hits.
 */
export function compare(hitIds, particle, tracks) {
  const found = Array.from(hitIds, (id) => tracks.get(Number(id)) ?? -1);
  const members = membersOf(found, particle);
  const chief = new Map([...members].map(([track, counts]) => [track, majority(counts)]));
  const kinds = Uint8Array.from(found, (track, hit) => {
    if (track < 0) return LEFT_OUT;
    if (particle[hit] < 0) return NOISE;
    return chief.get(track).particle === particle[hit] ? OWN : OTHER;
  });
  return { kinds, facts: factsOf(chief, kinds) };
}

/** For each track, how many hits each particle has in it. */
function membersOf(found, particle) {
  const members = new Map();
  found.forEach((track, hit) => {
    if (track < 0) return;
    if (!members.has(track)) members.set(track, new Map());
    const counts = members.get(track);
    counts.set(particle[hit], (counts.get(particle[hit]) ?? 0) + 1);
  });
  return members;
}

function majority(counts) {
  const hits = [...counts.values()].reduce((sum, one) => sum + one, 0);
  const real = [...counts].filter(([row]) => row >= 0).sort(([a, m], [b, n]) => n - m || a - b);
  const [particle, most] = real[0] ?? [-1, 0];
  return { particle, hits, purity: most / hits };
}

function factsOf(chief, kinds) {
  const tracks = [...chief.values()];
  const owners = tracks.map(({ particle }) => particle).filter((row) => row >= 0);
  const several = new Set(owners.filter((row, place) => owners.indexOf(row) !== place));
  const hits = tracks.reduce((sum, track) => sum + track.hits, 0);
  const of = (kind) => kinds.reduce((sum, one) => sum + (one === kind), 0);
  return {
    tracks: tracks.length,
    hitsPerTrack: tracks.length ? hits / tracks.length : 0,
    purity: tracks.length ? tracks.reduce((sum, track) => sum + track.purity, 0) / tracks.length : 0,
    pure: tracks.filter(({ purity }) => purity === 1).length,
    several: several.size,
    own: of(OWN),
    other: of(OTHER),
    leftOut: of(LEFT_OUT),
    noise: of(NOISE),
  };
}
