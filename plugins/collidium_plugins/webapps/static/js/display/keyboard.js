// Keyboard control of the picture, while it has the focus.

import { VIEWS } from "./view_state.js";

/** Bind keys of `stage`. */
export function prepareKeys(stage, display) {
  const { cameras } = display.stage;
  const keys = {
    ArrowLeft: () => cameras.nudge(-1, 0),
    ArrowRight: () => cameras.nudge(1, 0),
    ArrowUp: () => cameras.nudge(0, 1),
    ArrowDown: () => cameras.nudge(0, -1),
    "+": () => cameras.zoom(1),
    "=": () => cameras.zoom(1),
    "-": () => cameras.zoom(-1),
    0: () => display.reset(),
    n: () => display.step(1),
    p: () => display.step(-1),
    t: () => display.nextTrack(1),
    T: () => display.nextTrack(-1),
    c: () => display.nextColour(),
    f: () => display.fullScreen(),
    Escape: () => display.change({ pick: null }),
    "?": () => display.help(),
    ...Object.fromEntries(VIEWS.map((view, place) => [String(place + 1), () => display.look(view)])),
  };
  stage.addEventListener("keydown", (event) => {
    const act = event.target === stage && !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    display.settled();
  });
}
