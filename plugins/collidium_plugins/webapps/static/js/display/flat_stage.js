// The picture without WebGL: the two flat views on a 2D canvas, with the interface of Stage.

import { INK } from "./colours.js";
import { outlines } from "./outlines.js";
import { projector, segments, sideOf } from "./projection.js";
import { jetSolids, towerSolids } from "./solids.js";

/** A camera of a plane: the centre and size of its field of view, in mm. */
class FlatCameras {
  #changed;
  #size = () => ({ width: 1, height: 1 });
  centre = [0, 0];
  half = 1000;

  constructor(element, changed) {
    this.#changed = changed;
    this.#size = () => ({ width: element.clientWidth, height: Math.max(element.clientHeight, 1) });
    let held = null;
    element.addEventListener("pointerdown", ({ offsetX, offsetY }) => (held = [offsetX, offsetY]));
    element.addEventListener("pointerup", () => (held = null));
    element.addEventListener("pointermove", ({ offsetX, offsetY, buttons }) => {
      if (!held || !buttons) return;
      this.#move((held[0] - offsetX) * this.#scale, (offsetY - held[1]) * this.#scale);
      held = [offsetX, offsetY];
    });
    element.addEventListener("wheel", (turn) => {
      turn.preventDefault();
      this.zoom(-Math.sign(turn.deltaY));
    });
  }

  get #scale() {
    return (2 * this.half) / this.#size().height;
  }

  #move(right, up) {
    this.centre = [this.centre[0] + right, this.centre[1] + up];
    this.#changed();
  }

  look(view, { radius, length }) {
    const { width, height } = this.#size();
    this.centre = [0, 0];
    this.half = Math.max(1.15 * radius, view === "rz" ? (1.1 * length * height) / width : (1.15 * radius * height) / width);
    this.#changed();
  }

  fit() {}

  get place() {
    return [...this.centre, this.half, 0, 0, 0, 1];
  }

  set place([x, y, half]) {
    this.centre = [x, y];
    if (half > 0) this.half = half;
    this.#changed();
  }

  nudge(right, up) {
    this.#move(0.1 * right * this.half, 0.1 * up * this.half);
  }

  zoom(steps) {
    this.half /= 1.15 ** steps;
    this.#changed();
  }

  get matrix() {
    const { width, height } = this.#size();
    const [across, up] = [height / (width * this.half), 1 / this.half];
    return [across, 0, 0, 0, 0, up, 0, 0, 0, 0, 1, 0, -this.centre[0] * across, -this.centre[1] * up, 0, 1];
  }
}

export class FlatStage {
  #context;
  #canvas;
  #drawn;
  #frame = 0;
  #layers = new Map();
  #detector = null;
  #outlined = true;
  #view = "xy";
  #ground = "dark";
  views = ["xy", "rz"];
  cameras;

  constructor(canvas, drawn) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.#drawn = drawn;
    this.cameras = new FlatCameras(canvas, () => this.invalidate());
  }

  load({ hits, tracks, particles, towers, jets }, detector) {
    const axes = { towers: towerSolids(towers.bins, detector.calorimeter).axes, jets: jetSolids(jets, detector.calorimeter).axes };
    this.#detector = detector;
    this.#layers = new Map([
      ["towers", layer({ lines: axes.towers, width: 4 })],
      ["hits", layer({ position: hits.position })],
      ["particles", layer({ lines: particles.lines, width: 1 })],
      ["tracks", layer({ lines: tracks.lines, width: 1.6 })],
      ["jets", layer({ lines: axes.jets, width: 2 })],
    ]);
    this.invalidate();
    return axes;
  }

  set ground(ground) {
    this.#ground = ground;
    this.invalidate();
  }

  set view(view) {
    this.#view = view;
    const { radius, length } = this.#detector?.calorimeter ?? { radius: 1000, length: 3000 };
    this.cameras.look(view, { radius, length });
  }

  show(name, rows) {
    this.#set(name, { shown: rows.slice() });
  }

  paint(name, colours) {
    this.#set(name, { colours });
  }

  toggle(name, on) {
    if (name === "detector") this.#outlined = on;
    this.#set(name, { visible: on });
  }

  #set(name, what) {
    const found = this.#layers.get(name);
    if (found) Object.assign(found, what);
    this.invalidate();
  }

  resize(width, height) {
    this.#canvas.width = width * devicePixelRatio;
    this.#canvas.height = height * devicePixelRatio;
    this.invalidate();
  }

  invalidate() {
    this.#frame ||= requestAnimationFrame(() => this.render());
  }

  get matrix() {
    return this.cameras.matrix;
  }

  render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const context = this.#context;
    const size = { width: this.#canvas.width / devicePixelRatio, height: this.#canvas.height / devicePixelRatio };
    const project = projector(this.matrix, this.#view, size);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.fillStyle = INK[this.#ground].ground;
    context.fillRect(0, 0, size.width, size.height);
    this.#drawDetector(context, project);
    for (const one of this.#layers.values()) if (one.visible) draw(context, project, one);
    this.#drawn();
  }

  #drawDetector(context, project) {
    if (!this.#detector || !this.#outlined) return;
    context.strokeStyle = INK[this.#ground].line;
    context.lineWidth = 0.5;
    for (const line of outlines(this.#detector, this.#view)) strokeLine(context, project, line);
  }
}

function layer(options) {
  return { visible: true, shown: [], colours: [], ...options };
}

function draw(context, project, one) {
  for (let row = 0; row < one.shown.length; row += 1) {
    if (!one.shown[row]) continue;
    const colour = `rgb(${one.colours.slice(3 * row, 3 * row + 3).join()})`;
    if (one.position) dot(context, project, one.position, row, colour);
    else {
      context.strokeStyle = colour;
      context.lineWidth = one.width;
      strokeLine(context, project, one.lines[row]);
    }
  }
}

function dot(context, project, position, row, colour) {
  const [x, y, z] = position.slice(3 * row, 3 * row + 3);
  const seen = project(x, y, z, sideOf(y));
  context.fillStyle = colour;
  context.fillRect(seen.x - 1.5, seen.y - 1.5, 3, 3);
}

function strokeLine(context, project, line) {
  context.beginPath();
  for (const [from, to] of segments(line, project)) {
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
  }
  context.stroke();
}
