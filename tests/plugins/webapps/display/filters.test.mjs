import assert from "node:assert/strict";
import { test } from "node:test";
import { count, passing, tally } from "../../../../plugins/collidium_plugins/webapps/static/js/display/filters.js";
import { usual } from "../../../../plugins/collidium_plugins/webapps/static/js/display/view_state.js";

const VALUES = { pt: [0.5, 2, -1, 5], eta: [0, -3, 1, 2], time: [1, 2, 3, 4], volume: [16, 17, 17, 18] };
const shown = (changes, values = VALUES) => [...passing(4, values, { ...usual(), ...changes })];

test("no cut shows everything", () => assert.deepEqual(shown({}), [1, 1, 1, 1]));
test("p_T at least; what has none is shown where none is asked", () => assert.deepEqual(shown({ pt: 2 }), [0, 1, 0, 1]));
test("|η| at most, borders included", () => assert.deepEqual(shown({ eta: 2 }), [1, 0, 1, 1]));
test("a window of time", () => assert.deepEqual(shown({ time: [2, 3] }), [0, 1, 1, 0]));
test("a window of time that is open at one end", () => {
  assert.deepEqual(shown({ time: [2, null] }), [0, 1, 1, 1]);
  assert.deepEqual(shown({ time: [null, 2] }), [1, 1, 0, 0]);
});
test("volumes that are off", () => assert.deepEqual(shown({ off: new Set([17]) }), [1, 0, 0, 1]));
test("cuts add up", () => assert.deepEqual(shown({ pt: 1, eta: 2.5, off: new Set([16]) }), [0, 0, 0, 1]));

test("what an event does not record cannot be filtered", () => {
  const unknown = { pt: null, eta: null, time: null, volume: null };
  assert.deepEqual(shown({ pt: 9, eta: 0, time: [0, 0], off: new Set([1]) }, unknown), [1, 1, 1, 1]);
});

test("counts", () => {
  assert.equal(count(Uint8Array.of(1, 0, 1)), 2);
  assert.deepEqual([...tally([3, 1, 3])], [[1, 1], [3, 2]]);
});
