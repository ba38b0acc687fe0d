import assert from "node:assert/strict";
import { test } from "node:test";
import { ptOfStep, stepOfPt } from "../../../../plugins/collidium_plugins/webapps/static/js/display/controls.js";
import { qualitative, rgb, sequential } from "../../../../plugins/collidium_plugins/webapps/static/js/display/colours.js";
import { detectorOf } from "../../../../plugins/collidium_plugins/webapps/static/js/display/detector.js";
import { chargeOf, direction, eta } from "../../../../plugins/collidium_plugins/webapps/static/js/display/kinematics.js";
import { outlines } from "../../../../plugins/collidium_plugins/webapps/static/js/display/outlines.js";
import { niceStep, ticks } from "../../../../plugins/collidium_plugins/webapps/static/js/display/overlay.js";
import { distance, nearest } from "../../../../plugins/collidium_plugins/webapps/static/js/display/picking.js";
import { projector, segments } from "../../../../plugins/collidium_plugins/webapps/static/js/display/projection.js";
import { byKind, byNumber } from "../../../../plugins/collidium_plugins/webapps/static/js/display/scales.js";
import { towersOf } from "../../../../plugins/collidium_plugins/webapps/static/js/display/towers.js";

const IDENTITY = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
const SCREEN = { width: 200, height: 100 };
const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9, `${a} is not ${b}`);
const table = (columns) => ({ rows: Object.values(columns)[0].length, columns, withheld: "" });
const eventOf = (tables) => ({ source: {}, tables });

test("η and φ make the direction that they are of", () => {
  const { x, y, z } = direction(1.7, -2.2);
  near(Math.hypot(x, y, z), 1);
  near(eta(x, y, z), 1.7);
  near(Math.atan2(y, x), -2.2);
});

test("charges by the numbering of particles", () => {
  assert.deepEqual([11, -11, 211, -211, 2212, 22, 2112, -3112].map(chargeOf), [-1, 1, 1, -1, 1, 0, 0, 1]);
});

test("r–z shows the distance from the beam, above it and below", () => {
  const project = projector(IDENTITY, "rz", SCREEN);
  const [above, below] = [project(0.3, 0.4, 0.5, 1), project(0.3, -0.4, 0.5, -1)];
  near(above.x, 150);
  near(above.y, 25);
  near(below.y, 75);
});

test("a line from one half of r–z to the other is drawn in both, without a jump", () => {
  const project = projector(IDENTITY, "rz", SCREEN);
  const pieces = segments([-0.5, 0.2, 0, -0.5, 0.1, 0.1, -0.5, -0.2, 0.2], project);
  assert.equal(pieces.length, 2);
  assert.ok(pieces[0].every(({ y }) => y < 50));
  assert.ok(pieces[1].every(({ y }) => y > 50));
});

test("what lies behind the camera is nowhere", () => {
  const behind = [...IDENTITY];
  behind[15] = -1;
  assert.equal(projector(behind, "3d", SCREEN)(0, 0, 0, 1), null);
});

test("the nearest hit that is shown is picked, and a line where no hit is near", () => {
  const project = projector(IDENTITY, "xy", SCREEN);
  const hits = { kind: "hit", position: [0, 0, 0, 0.05, 0, 0], shown: [1, 1] };
  const tracks = { kind: "track", lines: [[-1, 0.5, 0, 1, 0.5, 0]], shown: [1] };
  assert.deepEqual(nearest({ x: 104, y: 50 }, [hits, tracks], project, 9), { kind: "hit", row: 1 });
  assert.deepEqual(nearest({ x: 104, y: 50 }, [{ ...hits, shown: [1, 0] }, tracks], project, 9), { kind: "hit", row: 0 });
  assert.deepEqual(nearest({ x: 20, y: 28 }, [hits, tracks], project, 9), { kind: "track", row: 0 });
  assert.equal(nearest({ x: 20, y: 90 }, [hits, tracks], project, 9), null);
});

test("distance from a line that is a point", () => near(distance({ x: 3, y: 4 }, { x: 0, y: 0 }, { x: 0, y: 0 }), 5));

test("numbers have colours of a scale, and unknown values are grey", () => {
  const { colours, legend } = byNumber([1, 10, 100, -1], { ground: "dark", unit: "GeV", logarithmic: true });
  assert.deepEqual([...colours.slice(0, 3)], sequential(0, "dark"));
  assert.deepEqual([...colours.slice(3, 6)], sequential(0.5, "dark"));
  assert.deepEqual([...colours.slice(6, 9)], sequential(1, "dark"));
  assert.deepEqual([...colours.slice(9)], rgb("#7d8894"));
  assert.deepEqual(legend, { kind: "scale", low: 1, high: 100, unit: "GeV", logarithmic: true });
});

test("one value alone, and none, have colours too", () => {
  assert.equal(byNumber([3, 3], { ground: "light", unit: "" }).colours.length, 6);
  assert.deepEqual(byNumber([], { ground: "light", unit: "" }).legend.low, 0);
});

test("kinds have a colour each, and the legend says which", () => {
  const { colours, legend } = byKind([7, 5, 9], { ground: "dark", keys: [5, 7], nameOf: (key) => `v${key}` });
  assert.deepEqual([...colours.slice(3, 6)], rgb(qualitative(0, "dark")));
  assert.deepEqual([...colours.slice(6)], rgb(qualitative(-1, "dark")));
  assert.deepEqual(legend.entries.map(({ name }) => name), ["v5", "v7"]);
});

test("cells are added up where they lie in one direction, EM and hadronic apart", () => {
  const cells = { x: [1300, 1301, 1300], y: [0, 1, 0], z: [10, 10, 10], total_energy: [1, 2, 4], detector: [10, 10, 13] };
  const found = towersOf(eventOf({ calo_hits: table(cells) }), { radius: 1252, length: 3202 });
  assert.deepEqual(found.map(({ kind, energy, cells: count }) => [kind, energy, count]).sort(), [["em", 3, 2], ["had", 4, 1]]);
});

test("without codes, what lies deep is hadronic", () => {
  const cells = { x: [1300, 1900, 500], y: [0, 0, 0], z: [0, 0, 3900], total_energy: [1, 1, 1] };
  const found = towersOf(eventOf({ calo_hits: table(cells) }), { radius: 1252, length: 3202 });
  assert.deepEqual(found.map(({ kind }) => kind).sort(), ["em", "had", "had"]);
});

test("an event without cells has no towers", () => assert.deepEqual(towersOf(eventOf({}), { radius: 1, length: 1 }), []));

test("hits that lie in no known layer show a detector of their own", () => {
  const hits = { x: [100, -100, 0], y: [0, 0, 100], z: [-500, 0, 500], volume_id: [1, 1, 1], layer_id: [2, 2, 2] };
  const known = { layers: [{ volume: 17, kind: "barrel", r: [30, 35], z: [-500, 500] }] };
  const { layers, tracker } = detectorOf(eventOf({ tracker_hits: table(hits) }), known);
  assert.deepEqual(layers, [{ volume: 1, kind: "barrel", r: [100, 100], z: [-500, 500] }]);
  assert.equal(tracker.radius, 105);
});

test("hits that lie in known layers are that detector's", () => {
  const hits = { x: [32], y: [0], z: [100], volume_id: [17] };
  const known = { layers: [{ volume: 17, kind: "barrel", r: [30, 35], z: [-500, 500] }] };
  assert.equal(detectorOf(eventOf({ tracker_hits: table(hits) }), known).layers, known.layers);
});

test("an event without hits has a detector all the same", () => {
  const known = { layers: [], name: "known" };
  assert.equal(detectorOf(eventOf({}), known).name, "known");
});

test("discs are rings in space, strokes in r–z, and nothing in x–y", () => {
  const layers = [{ volume: 16, kind: "disc", r: [40, 170], z: [600, 610] }];
  assert.equal(outlines({ layers }, "xy").length, 0);
  assert.deepEqual(outlines({ layers }, "rz"), [[0, -40, 605, 0, -170, 605], [0, 40, 605, 0, 170, 605]]);
  assert.equal(outlines({ layers }, "3d").length, 2);
});

test("rulers have round steps", () => {
  assert.deepEqual([0.7, 12, 20, 330].map(niceStep), [1, 20, 20, 500]);
  assert.deepEqual(ticks(50, 1, 20, 100).map(({ value }) => value), [-40, -20, 0, 20, 40]);
});

test("the p_T slider is logarithmic and comes back to where it was", () => {
  assert.equal(ptOfStep(0), 0);
  assert.equal(ptOfStep(100), 100);
  for (const step of [0, 1, 33, 50, 99, 100]) assert.ok(Math.abs(stepOfPt(ptOfStep(step)) - step) <= 1);
});
