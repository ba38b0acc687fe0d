// The controls next to the picture: show the state of the view and change it.

import { element, formatted } from "./elements.js";
import { tally } from "./filters.js";
import { LAYERS, VIEWS } from "./view_state.js";

const NAMES = {
  detector: "Detector",
  hits: "Hits",
  tracks: "Tracks",
  particles: "Particles (truth)",
  towers: "Calorimeter towers",
  jets: "Jets",
};
const $ = (id) => document.getElementById(id);
// Sliders have a hundred steps. The one of p_T is logarithmic, from 0.1 to 100 GeV, and its first step is no cut.
const [MIN_PT, DECADES, STEPS] = [0.1, 3, 100];

export function ptOfStep(step) {
  return step <= 0 ? 0 : Number((MIN_PT * 10 ** ((DECADES * step) / STEPS)).toPrecision(2));
}

export function stepOfPt(pt) {
  return pt <= 0 ? 0 : Math.min(Math.max(Math.round((STEPS / DECADES) * Math.log10(pt / MIN_PT)), 1), STEPS);
}

/** Binds the page's controls to `display`. */
export class Controls {
  #display;
  #times = [0, 1];

  constructor(display) {
    this.#display = display;
    $("views").addEventListener("click", ({ target }) => {
      const view = target.closest("[data-view]")?.dataset.view;
      if (view) display.look(view);
    });
    $("colour").addEventListener("change", ({ target }) => display.change({ colour: target.value }, true));
    $("ground").addEventListener("click", () => display.change({ ground: display.ground === "dark" ? "light" : "" }, true));
    $("reset").addEventListener("click", () => display.reset());
    $("full").addEventListener("click", () => display.fullScreen());
    $("help").addEventListener("click", () => display.help());
    $("let-go").addEventListener("click", () => display.change({ pick: null }, true));
    $("layers").addEventListener("change", () => display.change({ hidden: this.#unchecked("layers") }, true));
    $("volumes").addEventListener("change", () => {
      display.change({ off: new Set([...this.#unchecked("volumes")].map(Number)) }, true);
    });
    this.#cuts();
  }

  #cuts() {
    const change = (what) => this.#display.change(what);
    $("pt-slider").addEventListener("input", ({ target }) => change({ pt: ptOfStep(target.valueAsNumber) }));
    $("pt").addEventListener("input", ({ target }) => change({ pt: Math.max(target.valueAsNumber || 0, 0) }));
    $("eta-slider").addEventListener("input", ({ target }) => {
      change({ eta: target.value === target.max ? null : target.valueAsNumber });
    });
    $("eta").addEventListener("input", ({ target }) => change({ eta: target.value === "" ? null : Math.abs(target.valueAsNumber) }));
    for (const end of ["low", "high"]) {
      $(`time-${end}-slider`).addEventListener("input", ({ target }) => this.#time(end, this.#timeOf(end, target)));
      $(`time-${end}`).addEventListener("input", ({ target }) => this.#time(end, target.value === "" ? null : target.valueAsNumber));
    }
    for (const input of document.querySelectorAll(".cut input")) {
      input.addEventListener("change", () => this.#display.settled(true));
    }
  }

  /** The time where a slider stands; null at the slider's own end, where it cuts nothing. */
  #timeOf(end, { value, min, max, valueAsNumber }) {
    if (value === (end === "low" ? min : max)) return null;
    const [low, high] = this.#times;
    return Number((low + ((high - low) * valueAsNumber) / STEPS).toPrecision(4));
  }

  #time(end, value) {
    const [low, high] = this.#display.view.time ?? [null, null];
    const time = end === "low" ? [value, high] : [low, value];
    this.#display.change({ time: time.some((one) => one !== null) ? time : null });
  }

  #unchecked(id) {
    return new Set([...$(id).querySelectorAll("input")].filter((box) => !box.checked).map((box) => box.value));
  }

  /** Set the event, with its ways of colouring and cuts. */
  load(objects, detector, colours) {
    const has = (name) => name === "detector" || objects[name].count > 0;
    $("layers").replaceChildren(...LAYERS.filter(has).map((name) => check(name, NAMES[name])));
    const volumes = objects.hits.values.volume ? [...tally(objects.hits.values.volume)] : [];
    $("volumes").replaceChildren(
      ...volumes.map(([volume, hits]) => check(String(volume), detector.volumes[volume] ?? `volume ${volume}`, formatted(hits))),
    );
    $("volumes").parentElement.hidden = !volumes.length;
    const time = objects.hits.values.time;
    $("time-cut").hidden = !time;
    if (time) this.#times = range(time);
    this.colours(colours);
    for (const option of $("listed").options) option.hidden = !objects[{ track: "tracks", particle: "particles", jet: "jets", tower: "towers" }[option.value]].count;
  }

  /** Set the available ways of colouring. */
  colours(names) {
    for (const option of $("colour").options) option.hidden = option.disabled = !names.includes(option.value);
  }

  /** Show the state of `view`; `counts` are {shown, all} by layer. */
  update(view, ground, counts) {
    for (const name of VIEWS) $("views").querySelector(`[data-view="${name}"]`).setAttribute("aria-pressed", String(name === view.view));
    $("colour").value = view.colour;
    $("ground").setAttribute("aria-pressed", String(ground === "light"));
    for (const box of $("layers").querySelectorAll("input")) {
      box.checked = !view.hidden.has(box.value);
      const of = counts.get(box.value);
      box.parentElement.querySelector(".count").textContent = of ? counted(of) : "";
    }
    for (const box of $("volumes").querySelectorAll("input")) box.checked = !view.off.has(Number(box.value));
    settle($("pt-slider"), stepOfPt(view.pt));
    settle($("pt"), view.pt || "");
    settle($("eta-slider"), view.eta ?? $("eta-slider").max);
    settle($("eta"), view.eta ?? "");
    const [low, high] = view.time ?? [null, null];
    const stepOf = (time) => ((time - this.#times[0]) / (this.#times[1] - this.#times[0] || 1)) * STEPS;
    settle($("time-low-slider"), low === null ? 0 : stepOf(low));
    settle($("time-high-slider"), high === null ? STEPS : stepOf(high));
    settle($("time-low"), low ?? "");
    settle($("time-high"), high ?? "");
  }
}

function check(value, name, count = "") {
  const box = element("input", { type: "checkbox", value, checked: true });
  return element("label", {}, box, element("span", {}, name), element("span", { class: "count" }, count));
}

function counted({ shown, all }) {
  return shown === all ? formatted(all) : `${shown} of ${all}`;
}

/** Set a control, unless the user is typing in it. */
function settle(input, value) {
  if (document.activeElement !== input || input.type === "range") input.value = value;
}

function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}
