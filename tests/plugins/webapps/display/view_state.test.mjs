import assert from "node:assert/strict";
import { test } from "node:test";
import { format, parse, usual } from "../../../../plugins/collidium_plugins/webapps/static/js/display/view_state.js";

test("the usual view needs no words", () => {
  assert.equal(format(usual()), "");
  assert.deepEqual(parse(""), usual());
});

test("a view survives being a link", () => {
  const view = {
    view: "rz",
    colour: "pt",
    ground: "light",
    pt: 1.5,
    eta: 2.5,
    time: [0.25, 9],
    hidden: new Set(["jets", "detector"]),
    off: new Set([17, 3]),
    pick: { kind: "track", row: 12 },
    camera: [1, 2, 3, 0, 0, 0.5, 1.25],
  };

  assert.deepEqual(parse(`#${format(view)}`), view);
});

for (const time of [[null, 9], [0.25, null]]) {
  test(`a time that is open at one end survives too: ${time}`, () => {
    const view = { ...usual(), time };
    assert.deepEqual(parse(format(view)), view);
  });
}

test("showing everything is a view of its own", () => {
  const view = { ...usual(), hidden: new Set() };

  assert.deepEqual(parse(format(view)), view);
});

for (const nonsense of [
  "view=4d",
  "colour=<script>",
  "ground=red",
  "pt=-1",
  "pt=abc",
  "eta=Infinity",
  "time=1",
  "time=a,b",
  "time=,",
  "time=1,b",
  "hide=particles,nothing",
  "off=x,-1",
  "pick=track:-1",
  "pick=house:1",
  "pick=track:99999999999",
  "camera=1,2,3",
  "camera=1,2,3,4,5,6,NaN",
]) {
  test(`${nonsense} is as usual`, () => assert.deepEqual(parse(nonsense), usual()));
}
