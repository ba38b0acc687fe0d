// The picture: an event's batches and a camera. Frames are only drawn after changes.

import { Matrix4, Scene, WebGLRenderer } from "../../vendor/three.js";
import { hitBatch, lineBatch, solidBatch } from "./batches.js";
import { Cameras } from "./cameras.js";
import { INK, rgb } from "./colours.js";
import { beam, outlines } from "./outlines.js";
import { plain } from "./scales.js";
import { VIEW_NUMBERS } from "./shaders.js";
import { jetSolids, towerSolids } from "./solids.js";
import { VIEWS } from "./view_state.js";

// Events with more hits are drawn with smaller and more transparent objects.
const CROWD = 20_000;
const LINE_WIDTH = { tracks: 1.6, particles: 1.0, detector: 0.8, beam: 1.2 };
const OPACITY = { tracks: 0.9, particles: 0.6, detector: 0.4, beam: 0.8, towers: 0.4, jets: 0.16 };
const SEEN_THROUGH = new Set(["tracks", "particles"]);
// Later ones are drawn over earlier ones.
const ORDER = ["detector", "beam", "towers", "hits", "particles", "tracks", "jets"];

/** Draws into `canvas`; calls `drawn` after each frame. Throws where the browser has no WebGL 2. */
export class Stage {
  #renderer;
  #drawn;
  #scene = new Scene();
  #shared = { view: { value: 0 }, screen: { value: [1, 1] } };
  #batches = new Map();
  #hidden = new Set();
  #detector = null;
  #crowd = 1;
  #view = "3d";
  #ground = "dark";
  #frame = 0;
  views = VIEWS;
  cameras;

  constructor(canvas, drawn) {
    this.#renderer = new WebGLRenderer({ canvas, antialias: true, alpha: false, powerPreference: "high-performance" });
    this.#drawn = drawn;
    this.cameras = new Cameras(canvas, () => this.invalidate());
  }

  /** Show the objects of another event; returns the axes of towers and jets, by row. */
  load({ hits, tracks, particles, towers, jets }, detector) {
    const crowded = hits.count > CROWD;
    const size = { value: (crowded ? 1.6 : 4.5) * devicePixelRatio };
    this.#crowd = crowded ? 0.4 : 1;
    this.#detector = detector;
    const bars = towerSolids(towers.bins, detector.calorimeter);
    const cones = jetSolids(jets, detector.calorimeter);
    this.#put("beam", lineBatch([beam(detector)], this.#line("beam")));
    this.#put("towers", solidBatch(bars, this.#solid("towers")));
    this.#put("hits", hitBatch(hits, { view: this.#shared.view, size }));
    this.#put("particles", lineBatch(particles.lines, this.#line("particles")));
    this.#put("tracks", lineBatch(tracks.lines, this.#line("tracks")));
    this.#put("jets", solidBatch(cones, this.#solid("jets")));
    this.#outline();
    return { towers: bars.axes, jets: cones.axes };
  }

  #line(name) {
    return { ...this.#solid(name), screen: this.#shared.screen, width: { value: LINE_WIDTH[name] * devicePixelRatio } };
  }

  #solid(name) {
    return { view: this.#shared.view, opacity: { value: OPACITY[name] * (SEEN_THROUGH.has(name) ? this.#crowd : 1) } };
  }

  /** Draw `batch` in place of the one of that name. */
  #put(name, batch) {
    const before = this.#batches.get(name);
    if (before) {
      this.#scene.remove(before.drawable);
      before.dispose();
    }
    this.#batches.set(name, batch);
    batch.drawable.renderOrder = ORDER.indexOf(name);
    batch.drawable.visible = !this.#hidden.has(name);
    batch.drawable.material.depthTest = this.#view === "3d";
    this.#scene.add(batch.drawable);
  }

  /** Draw the outlines of detector and beam in the current view. */
  #outline() {
    if (!this.#detector) return;
    const lines = outlines(this.#detector, this.#view);
    this.#put("detector", lineBatch(lines, this.#line("detector")));
    const { colours } = plain(Math.max(lines.length, 1), INK[this.#ground].line);
    for (const name of ["detector", "beam"]) {
      this.#batches.get(name).show(new Uint8Array(lines.length + 1).fill(1));
      this.#batches.get(name).paint(colours);
    }
    this.invalidate();
  }

  /** Set the background: "dark" or "light". */
  set ground(ground) {
    this.#ground = ground;
    const [red, green, blue] = rgb(INK[ground].ground);
    this.#renderer.setClearColor((red << 16) | (green << 8) | blue);
    this.#outline();
  }

  set view(view) {
    this.#view = view;
    this.#shared.view.value = VIEW_NUMBERS[view];
    for (const { drawable } of this.#batches.values()) drawable.material.depthTest = view === "3d";
    this.#outline();
    this.cameras.look(view, this.#detector.calorimeter);
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
    if (on) this.#hidden.delete(name);
    else this.#hidden.add(name);
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

  /** Draw a frame now; the canvas can be read until the caller returns to the event loop. */
  render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#renderer.render(this.#scene, this.cameras.camera);
    this.#drawn();
  }

  /** The number of draw calls of the last frame. */
  get calls() {
    return this.#renderer.info.render.calls;
  }

  /** A matrix from millimetres to the screen, −1 to 1, as 16 numbers, columns first. */
  get matrix() {
    const { camera } = this.cameras;
    camera.updateMatrixWorld();
    return new Matrix4().multiplyMatrices(camera.projectionMatrix, camera.matrixWorldInverse).elements;
  }
}
