import assert from "node:assert/strict";
import { test } from "node:test";
import { at, fromPerigee, fromVertex, trace } from "../../../../plugins/collidium_plugins/webapps/static/js/display/helix.js";

const TRACKER = { radius: 1000, length: 3000 };

test("a particle of 1 GeV in 2 T flies on a circle of 1.668 m", () => {
  const helix = fromVertex({ x: 0, y: 0, z: 0, px: 1, py: 0, pz: 0, charge: 1 }, 2);
  const radius = 1 / (0.000299792458 * 2);
  const half = at(helix, Math.PI * radius);

  assert.ok(Math.abs(Math.hypot(half.x, half.y) - 2 * radius) < 1e-6);
  assert.ok(half.y < 0, "positive charges turn clockwise");
});

test("opposite charges turn to opposite sides", () => {
  const of = (charge) => at(fromVertex({ x: 0, y: 0, z: 0, px: 1, py: 0, pz: 0, charge }, 2), 500).y;

  assert.equal(of(-1), -of(1));
  assert.ok(of(-1) > 0);
});

test("a perigee is the point of its helix nearest to the beam, on its left where d0 is positive", () => {
  const helix = fromPerigee({ d0: 3, z0: 20, phi: 0.5, theta: 1.2, qop: 0.4 }, 2);
  const away = (s) => Math.hypot(at(helix, s).x, at(helix, s).y);

  assert.ok(Math.abs(away(0) - 3) < 1e-12);
  assert.ok(away(1) > away(0) && away(-1) > away(0));
  assert.equal(at(helix, 0).z, 20);
  assert.ok(Math.cos(0.5) * at(helix, 0).y - Math.sin(0.5) * at(helix, 0).x > 0);
});

test("a line ends on the wall of the tracker", () => {
  const fast = trace(fromVertex({ x: 0, y: 0, z: 0, px: 5, py: 5, pz: 1, charge: 1 }, 2), TRACKER);
  const steep = trace(fromVertex({ x: 0, y: 0, z: 0, px: 0.1, py: 0, pz: -5, charge: 1 }, 2), TRACKER);

  assert.ok(Math.abs(Math.hypot(fast.at(-3), fast.at(-2)) - 1000) < 0.1);
  assert.ok(Math.abs(steep.at(-1) + 3000) < 1e-6);
});

test("what curls is drawn for one turn", () => {
  const line = trace(fromVertex({ x: 0, y: 0, z: 0, px: 0.1, py: 0, pz: 0, charge: 1 }, 2), TRACKER);

  assert.ok(Math.hypot(line.at(-3), line.at(-2)) < 1e-6);
  assert.ok(line.length / 3 >= 8);
});

test("what has no charge flies straight", () => {
  const line = trace(fromVertex({ x: 0, y: 0, z: 0, px: 1, py: 1, pz: 0, charge: 0 }, 2), TRACKER);

  for (let place = 0; place < line.length; place += 3) assert.ok(Math.abs(line[place] - line[place + 1]) < 1e-9);
});

test("what starts outside of the tracker is not drawn", () => {
  assert.deepEqual(trace(fromVertex({ x: 1200, y: 0, z: 0, px: 1, py: 0, pz: 0, charge: 1 }, 2), TRACKER), []);
  assert.deepEqual(trace(fromVertex({ x: 0, y: 0, z: 3500, px: 1, py: 0, pz: 1, charge: 1 }, 2), TRACKER), []);
});
