// The event display: the state of one event and one view, and its updates.

import { ComparePanel } from "./compare_panel.js";
import { Controls } from "./controls.js";
import { describe } from "./details.js";
import { detectorOf } from "./detector.js";
import { element, fact } from "./elements.js";
import { count, passing } from "./filters.js";
import { legendNodes, objectKeys } from "./legend.js";
import { Listing } from "./listing.js";
import { addressOf, fetchEvent, NoEvent } from "./loading.js";
import { marksOf } from "./marks.js";
import { objectsOf } from "./objects.js";
import { drawOverlay } from "./overlay.js";
import { colourings, paint } from "./painting.js";
import { nearest } from "./picking.js";
import { projector } from "./projection.js";
import { isWithheld } from "./tables.js";
import { copyLink, offerDownloads, savePicture } from "./take_along.js";
import { COLOURS, usual } from "./view_state.js";

const $ = (id) => document.getElementById(id);
const KINDS = ["hits", "tracks", "particles", "towers", "jets"];
// Properties of a view that select the shown objects.
const CUTS = ["pt", "eta", "time", "hidden", "off"];
// Pixels: how near a pointer has to be, and how far it may move in a click. Fingers are wider.
const REACH = { mouse: 9, pen: 12, touch: 18 };
const STILL = 5;

export class Display {
  #api;
  #address;
  #canvases;
  #known;
  #controls;
  #listing;
  #comparing;
  #loading = null;
  #event = null;
  #objects = null;
  #detector = null;
  #axes = { towers: [], jets: [] };
  #shown = new Map();
  #counts = new Map();
  #comparison = null;
  #marks = { points: [], lines: [] };
  #source;
  stage;
  view;

  constructor({ api, address, canvases, detector, makeStage }) {
    this.#api = api;
    this.#address = address;
    this.#canvases = canvases;
    this.#known = detector;
    this.#source = address.source;
    this.view = address.view;
    this.stage = makeStage(() => this.#overlay());
    this.#controls = new Controls(this);
    this.#comparing = new ComparePanel((comparison) => {
      this.#comparison = comparison;
      this.change({ colour: comparison ? "match" : this.view.colour });
    });
    this.#listing = new Listing($("list"), $("more"), (pick) => this.change({ pick }, true));
    this.#listen();
  }

  get ground() {
    return this.view.ground || "dark";
  }

  /** Show the event and view of the URL. */
  async open() {
    for (const button of $("views").children) button.disabled = !this.stage.views.includes(button.dataset.view);
    this.#resize();
    await this.#load();
  }

  #listen() {
    new ResizeObserver(() => this.#resize()).observe($("stage"));
    addEventListener("popstate", () => this.#goBack());
    $("choice").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#choose();
    });
    $("dataset").addEventListener("change", () => this.#choose(true));
    for (const button of document.querySelectorAll("[data-step]")) {
      button.addEventListener("click", () => this.step(Number(button.dataset.step)));
    }
    $("listed").addEventListener("change", () => this.#list());
    $("png").addEventListener("click", () => {
      this.stage.render(); // the canvas can be read until the browser paints
      savePicture(this.#canvases, this.#source, this.#event.source.revision, this.ground);
    });
    $("link").addEventListener("click", () => {
      this.settled();
      copyLink();
    });
    this.#listenToPointer();
  }

  #listenToPointer() {
    const canvas = this.#canvases.below;
    let down = null;
    canvas.addEventListener("pointerdown", ({ clientX, clientY }) => (down = { x: clientX, y: clientY }));
    canvas.addEventListener("pointerup", (event) => {
      const still = down && Math.hypot(event.clientX - down.x, event.clientY - down.y) < STILL;
      if (still) this.#pick({ x: event.offsetX, y: event.offsetY }, REACH[event.pointerType] ?? REACH.mouse);
      else if (down) this.settled();
      down = null;
    });
    canvas.addEventListener("wheel", () => this.settled());
  }

  // -- the event ------------------------------------------------------------------------------------

  #choose(first = false) {
    const option = $("dataset").selectedOptions[0];
    $("dataset").title = option.title;
    const cut = option.value.lastIndexOf("/");
    const event = first ? Number(option.dataset.first || 0) : $("event").valueAsNumber;
    this.#go({ repo: option.value.slice(0, cut), config: option.value.slice(cut + 1), event });
  }

  /** Show the event `steps` later. */
  step(steps) {
    this.#go({ ...this.#source, event: Math.max(this.#source.event + steps, 0) });
  }

  async #go(source) {
    this.#name(source);
    this.view = { ...this.view, pick: null };
    this.#address.write(source, this.view, true);
    await this.#load();
  }

  async #goBack() {
    const { source } = this.#address;
    const other = JSON.stringify(source) !== JSON.stringify(this.#source);
    this.#name(source);
    const before = this.view;
    this.view = this.#address.view;
    if (other) await this.#load();
    else this.#refresh(before.view !== this.view.view || this.view.camera !== null);
  }

  // Not after loading: the user may be typing the next number meanwhile.
  #name(source) {
    this.#source = source;
    $("event").value = source.event;
  }

  async #load() {
    this.#loading?.abort();
    const controller = (this.#loading = new AbortController());
    this.#close();
    $("waiting").hidden = false;
    $("message").hidden = true;
    $("progress").removeAttribute("value");
    try {
      const event = await fetchEvent(addressOf(this.#api, this.#source), {
        progress: (bytes, total) => total && ($("progress").value = bytes / total),
        signal: controller.signal,
      });
      this.#receive(event);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#fail(error);
    }
    $("waiting").hidden = true;
  }

  /** Remove the event from the page. */
  #close() {
    this.#event = null;
    this.#objects = null;
    this.#marks = { points: [], lines: [] };
    this.#comparing.close();
    this.#tellWithheld(false);
    $("png").disabled = true;
  }

  #receive(event) {
    this.#event = event;
    this.#detector = detectorOf(event, this.#known);
    this.#objects = objectsOf(event, this.#detector);
    this.#comparison = null;
    this.#axes = this.stage.load(this.#objects, this.#detector);
    this.#controls.load(this.#objects, this.#detector, colourings(this.#objects, null));
    this.#comparing.load(this.#source, event, this.#objects.hits);
    this.#tellWithheld(isWithheld(event));
    $("png").disabled = false;
    offerDownloads(this.#api, this.#source);
    document.title = `Event ${this.#source.event} of ${this.#source.config} · Collidium`;
    this.#refresh(true);
  }

  #fail(error) {
    const { title, again } = error instanceof NoEvent ? error : { title: "This event cannot be shown", again: false };
    const retry = element("button", { type: "button" }, "Try again");
    retry.addEventListener("click", () => this.#load());
    $("message").replaceChildren(element("h2", {}, title), element("p", {}, error.message), ...(again ? [retry] : []));
    $("message").hidden = false;
    $("summary").textContent = title;
    if (!(error instanceof NoEvent)) console.error(error);
  }

  // -- the view -------------------------------------------------------------------------------------

  /** Change part of the view; `step` adds a step to the history. */
  change(changes, step = false) {
    if (!this.#objects) return;
    this.view = { ...this.view, ...changes };
    this.#allowed();
    if (CUTS.some((name) => name in changes)) {
      this.#filter();
      this.#list();
    }
    if ("colour" in changes || "ground" in changes) this.#paint();
    this.#showState();
    if (step) this.#remember(true);
  }

  /** Show another view from its default position. */
  look(view) {
    if (!this.stage.views.includes(view)) return;
    this.view = { ...this.view, view, camera: null };
    this.#refresh(true);
    this.#remember(true);
  }

  /** Reset everything except the view and its colours. */
  reset() {
    const { view, colour, ground } = this.view;
    this.view = { ...usual(), view, colour, ground };
    this.#refresh(true);
    this.#remember(true);
  }

  nextColour() {
    if (!this.#objects) return;
    const names = COLOURS.filter((name) => colourings(this.#objects, this.#comparison).includes(name));
    this.change({ colour: names[(names.indexOf(this.view.colour) + 1) % names.length] }, true);
  }

  /** Pick the track `steps` later in order of p_T. */
  nextTrack(steps) {
    if (!this.#objects) return;
    const { values } = this.#objects.tracks;
    const shown = this.#shown.get("tracks");
    const order = Array.from(shown.keys()).filter((row) => shown[row]).sort((a, b) => values.pt[b] - values.pt[a]);
    if (!order.length) return;
    const at = this.view.pick?.kind === "track" ? order.indexOf(this.view.pick.row) : steps > 0 ? -1 : 0;
    this.change({ pick: { kind: "track", row: order[(at + steps + order.length) % order.length] } }, true);
  }

  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else $("stage").closest(".picture").requestFullscreen?.();
  }

  help() {
    $("keys").showModal();
  }

  /** Write the camera's position to the URL after a movement. */
  settled(step = false) {
    this.view = { ...this.view, camera: step ? this.view.camera : this.stage.cameras.place };
    this.#remember(step);
  }

  #remember(step) {
    this.#address.write(this.#source, this.view, step);
  }

  /** Draw the view; `moveCamera` moves the camera to the view's position or the default one. */
  #refresh(moveCamera) {
    if (!this.#objects) return;
    this.#allowed();
    if (moveCamera) {
      this.stage.view = this.view.view;
      if (this.view.camera) this.stage.cameras.place = this.view.camera;
    }
    this.#filter();
    this.#paint();
    this.#list();
    this.#showState();
  }

  /** Remove settings that the event does not support. */
  #allowed() {
    if (!this.stage.views.includes(this.view.view)) this.view.view = this.stage.views[0];
    const names = colourings(this.#objects, this.#comparison);
    if (!names.includes(this.view.colour)) this.view.colour = names[0] ?? "volume";
    if (this.view.pick && !describe(this.#event, this.#objects, this.view.pick)) this.view.pick = null;
    this.#controls.colours(names);
  }

  #filter() {
    const { hidden } = this.view;
    for (const name of ["detector", "beam", ...KINDS]) this.stage.toggle(name, !hidden.has(name === "beam" ? "detector" : name));
    for (const name of KINDS) {
      const { count: all, values } = this.#objects[name];
      const shown = passing(all, values, this.view);
      this.#shown.set(name, shown);
      this.stage.show(name, shown);
      this.#counts.set(name, { shown: count(shown), all });
    }
  }

  #paint() {
    const { ground, stage } = this;
    const options = { ground, detector: this.#detector, comparison: this.#comparison };
    const { layers, legend } = paint(this.#objects, this.view.colour, options);
    stage.ground = ground;
    layers.forEach((colours, name) => stage.paint(name, colours));
    $("legend").replaceChildren(...legendNodes(legend, ground), ...objectKeys(this.#objects, ground));
  }

  /** Update controls, legend and overlay. */
  #showState() {
    this.#controls.update(this.view, this.ground, this.#counts);
    this.#showPick();
    this.#showCounts();
    this.#listing.mark(this.view.pick);
    this.stage.invalidate();
  }

  #showCounts() {
    const counts = KINDS.map((name) => ({ name, ...this.#counts.get(name) }))
      .filter(({ name, all }) => all && !this.view.hidden.has(name))
      .map(({ name, shown, all }) => `${shown} of ${all} ${name}`);
    const { config, event } = this.#source;
    $("summary").textContent = `Event ${event} of ${config}: ${counts.join(", ") || "nothing"} shown.`;
    const hint = $("cut-hint");
    hint.hidden = this.#objects.hits.values.pt !== null || this.view.pt === 0;
    hint.textContent = "The event has no particles of these hits: the cut is on tracks and jets alone.";
  }

  /** An empty message keeps its space, to avoid layout shifts. */
  #tellWithheld(withheld) {
    $("scored").toggleAttribute("data-shown", withheld);
  }

  #list() {
    if (!this.#objects) return;
    const usable = [...$("listed").options].filter((option) => !option.hidden);
    if ($("listed").selectedOptions[0]?.hidden !== false && usable.length) $("listed").value = usable[0].value;
    this.#listing.fill($("listed").value, this.#objects, this.#shown, this.view.pick);
  }

  // -- one object ------------------------------------------------------------------------------------

  #pick(point, reach) {
    if (!this.#objects) return;
    const found = nearest(point, this.#layers(), this.#projector(), reach);
    this.change({ pick: found }, true);
  }

  /** Pickable objects: hits first, since lines pass through them. */
  #layers() {
    const { hits, tracks, particles } = this.#objects;
    const layers = [
      { kind: "hit", layer: "hits", position: hits.position },
      { kind: "track", layer: "tracks", lines: tracks.lines },
      { kind: "particle", layer: "particles", lines: particles.lines },
      { kind: "tower", layer: "towers", lines: this.#axes.towers },
      { kind: "jet", layer: "jets", lines: this.#axes.jets },
    ];
    return layers.filter(({ layer }) => !this.view.hidden.has(layer)).map((one) => ({ ...one, shown: this.#shown.get(one.layer) }));
  }

  #showPick() {
    const { pick } = this.view;
    const found = pick && describe(this.#event, this.#objects, pick);
    this.#marks = marksOf(this.#event, this.#objects, this.#axes, found ? pick : null);
    $("chosen-hint").hidden = Boolean(found);
    $("let-go").hidden = !found;
    const facts = found ? [[found.title], ...found.facts] : [];
    $("chosen").replaceChildren(...facts.flatMap(([name, value, unit]) => (value === undefined ? [element("dt", { class: "title" }, name)] : fact(name, value, unit))));
  }

  #size() {
    const { below } = this.#canvases;
    return { width: below.clientWidth, height: below.clientHeight, ratio: devicePixelRatio };
  }

  #projector() {
    return projector(this.stage.matrix, this.view.view, this.#size());
  }

  #overlay() {
    if (!this.#detector) return;
    const context = this.#canvases.above.getContext("2d");
    const { view, ground } = this;
    const size = this.#size();
    drawOverlay(context, { size, view: view.view, ground, project: this.#projector(), marks: this.#marks, extent: this.#detector.tracker });
  }

  #resize() {
    const { width, height, ratio } = this.#size();
    Object.assign(this.#canvases.above, { width: width * ratio, height: height * ratio });
    this.stage.resize(width, height);
  }
}
