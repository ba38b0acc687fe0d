// The picture: an event's batches, seen through a camera. Frames are drawn when something changed, and only then.

import { Matrix4, Scene, WebGLRenderer } from "../../vendor/three.js";
import { hitBatch, lineBatch, solidBatch } from "./batches.js";
import { Cameras } from "./cameras.js";
import { INK, rgb } from "./colours.js";
import { beam, outlines } from "./outlines.js";
import { VIEW_NUMBERS } from "./shaders.js";
import { jetSolids, towerSolids } from "./solids.js";
import { VIEWS } from "./view_state.js";

// From so many hits on an event is crowded: less of everything, so that one sees into it.
const CROWD = 20_000;
const LINE_WIDTH = { tracks: 1.6, particles: 1.0, detector: 0.8, beam: 1.2 };
const OPACITY = { tracks: 0.9, particles: 0.6, detector: 0.4, beam: 0.8, towers: 1, jets: 0.16 };

/** Draws into `canvas`; calls `drawn` after each frame. Throws where the browser has no WebGL 2. */
export class Stage {
  #renderer;
  #scene = new Scene();
  #shared = { view: { value: 0 }, screen: { value: [1, 1] } };
  #size = { value: 4 };
  #batches = new Map();
  #frame = 0;
  #drawn;
  #bounds = { radius: 1000, length: 3000 };
  #view = "3d";
  views = VIEWS;
  cameras;

  constructor(canvas, drawn) {
    this.#renderer = new WebGLRenderer({ canvas, antialias: true, alpha: false, powerPreference: "high-performance" });
    this.#drawn = drawn;
    this.cameras = new Cameras(canvas, () => this.invalidate());
  }

  /** Show the objects of another event; returns the axes of towers and jets, by row. */
  load(objects, detector) {
    for (const name of [...this.#batches.keys()]) this.#remove(name);
    this.#bounds = { radius: detector.calorimeter.radius, length: detector.calorimeter.length };
    const { hits, tracks, particles, towers, jets } = objects;
    const bars = towerSolids(towers.bins, detector.calorimeter);
    const cones = jetSolids(jets, detector.calorimeter);
    this.#crowd = hits.count > CROWD ? 0.4 : 1;
    this.#size.value = (hits.count > CROWD ? 1.6 : 4.5) * devicePixelRatio;
    this.#add("detector", null);
    this.#detector = detector;
    this.#add("beam", lineBatch([beam(detector)], this.#line("beam")));
    this.#add("towers", solidBatch(bars, this.#solid("towers")));
    this.#add("hits", hitBatch(hits, { view: this.#shared.view, size: this.#size }));
    this.#add("particles", lineBatch(particles.lines, this.#line("particles")));
    this.#add("tracks", lineBatch(tracks.lines, this.#line("tracks")));
    this.#add("jets", solidBatch(cones, this.#solid("jets")));
    this.#outline();
    return { towers: bars.axes, jets: cones.axes };
  }

  #detector = null;
  #crowd = 1;

  #line(name) {
    return { ...this.#shared, width: { value: LINE_WIDTH[name] * devicePixelRatio }, opacity: { value: OPACITY[name] * (name === "detector" ? 1 : this.#crowd) } };
  }

  #solid(name) {
    return { view: this.#shared.view, opacity: { value: OPACITY[name] * (name === "towers" ? 1 : this.#crowd) } };
  }

  #add(name, batch) {
    if (!batch) return;
    this.#batches.set(name, batch);
    batch.drawable.renderOrder = ["detector", "beam", "towers", "hits", "particles", "tracks", "jets"].indexOf(name);
    this.#scene.add(batch.drawable);
  }

  #remove(name) {
    const batch = this.#batches.get(name);
    if (!batch) return;
    this.#scene.remove(batch.drawable);
    batch.dispose();
    this.#batches.delete(name);
  }

  /** The detector's lines are others in each view. */
  #outline() {
    if (!this.#detector) return;
    this.#remove("detector");
    const lines = outlines(this.#detector, this.#view);
    const batch = lineBatch(lines, this.#line("detector"));
    this.#add("detector", batch);
    batch.show(new Uint8Array(lines.length).fill(1));
    batch.paint(this.#inked(lines.length));
    this.#batches.get("beam").show([1]);
    this.#batches.get("beam").paint(this.#inked(1));
    this.invalidate();
  }

  #ground = "dark";

  #inked(count) {
    return Uint8Array.from({ length: 3 * count }, (_, place) => rgb(INK[this.#ground].line)[place % 3]);
  }

  /** Colour of what is behind everything: "dark" or "light". */
  set ground(ground) {
    this.#ground = ground;
    const [red, green, blue] = rgb(INK[ground].ground);
    this.#renderer.setClearColor((red << 16) | (green << 8) | blue);
    this.#outline();
  }

  set view(view) {
    this.#view = view;
    this.#shared.view.value = VIEW_NUMBERS[view];
    for (const batch of this.#batches.values()) batch.drawable.material.depthTest = view === "3d";
    this.#outline();
    const batch = this.#batches.get("detector");
    if (batch) batch.drawable.material.depthTest = view === "3d";
    this.cameras.look(view, this.#bounds);
    this.invalidate();
  }

  show(name, rows) {
    this.#batches.get(name)?.show(rows);
    this.invalidate();
  }

  paint(name, colours) {
    this.#batches.get(name)?.paint(colours);
    this.invalidate();
  }

  toggle(name, on) {
    const batch = this.#batches.get(name);
    if (batch) batch.drawable.visible = on;
    this.invalidate();
  }

  resize(width, height) {
    this.#renderer.setPixelRatio(devicePixelRatio);
    this.#renderer.setSize(width, height, false);
    this.#shared.screen.value = [width * devicePixelRatio, height * devicePixelRatio];
    this.cameras.fit();
    this.invalidate();
  }

  /** Draw a frame soon. */
  invalidate() {
    this.#frame ||= requestAnimationFrame(() => this.render());
  }

  /** Draw a frame now; what the canvas shows may be read until the caller gives control back. */
  render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#renderer.render(this.#scene, this.cameras.camera);
    this.#drawn();
  }

  /** What the last frame cost: draw calls, and how many points and triangles they drew. */
  get cost() {
    const { calls, points, triangles } = this.#renderer.info.render;
    return { calls, points, triangles };
  }

  /** A matrix from millimetres to the screen, −1 to 1, as 16 numbers, columns first. */
  get matrix() {
    const { camera } = this.cameras;
    camera.updateMatrixWorld();
    return new Matrix4().multiplyMatrices(camera.projectionMatrix, camera.matrixWorldInverse).elements;
  }
}
