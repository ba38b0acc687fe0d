import assert from "node:assert/strict";
import { test } from "node:test";
import { compare, LEFT_OUT, NOISE, OTHER, OWN } from "../../../../plugins/collidium_plugins/webapps/static/js/display/comparison.js";

test("each hit is its track's particle's, another one's, noise or left out", () => {
  const ids = [10, 11, 12, 13, 14, 15];
  const particle = [0, 0, 1, -1, 1, 1];
  const tracks = new Map([[10, 7], [11, 7], [12, 7], [13, 7], [14, -1]]);
  const { kinds, facts } = compare(ids, particle, tracks);

  assert.deepEqual([...kinds], [OWN, OWN, OTHER, NOISE, LEFT_OUT, LEFT_OUT]);
  assert.deepEqual(facts, {
    tracks: 1, hitsPerTrack: 4, purity: 0.5, pure: 0, several: 0, own: 2, other: 1, leftOut: 2, noise: 1,
  });
});

test("a particle with the most hits of two tracks is marked", () => {
  const { facts } = compare([0, 1, 2, 3], [5, 5, 5, 5], new Map([[0, 1], [1, 1], [2, 2], [3, 2]]));

  assert.equal(facts.several, 1);
  assert.equal(facts.pure, 2);
});

test("of two with as many hits the lesser row counts", () => {
  const { kinds } = compare([0, 1], [4, 3], new Map([[0, 1], [1, 1]]));

  assert.deepEqual([...kinds], [OTHER, OWN]);
});

test("a track of noise alone has no particle and no purity", () => {
  const { facts } = compare([0, 1], [-1, -1], new Map([[0, 1], [1, 1]]));

  assert.deepEqual([facts.tracks, facts.purity, facts.noise], [1, 0, 2]);
});

test("no track at all", () => {
  const { facts } = compare([0], [0], new Map([[99, 1]]));

  assert.deepEqual([facts.tracks, facts.purity, facts.leftOut], [0, 0, 1]);
});
