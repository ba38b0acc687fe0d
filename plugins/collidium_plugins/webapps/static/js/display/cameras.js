// Cameras: perspective in space, orthographic for planes.

import { OrbitControls, OrthographicCamera, PerspectiveCamera, Vector3 } from "../../vendor/three.js";

const FIELD_OF_VIEW = 35;
// Step of a key: radians, and a factor of distance.
const TURN = Math.PI / 36;
const CLOSER = 1.15;
// What OrbitControls call moving with one finger (TOUCH.PAN of three.js).
const PAN = 1;

/** A camera with controls for each view; `changed` is called after every move. */
export class Cameras {
  #perspective = new PerspectiveCamera(FIELD_OF_VIEW, 1, 10, 200_000);
  #flat = new OrthographicCamera(-1, 1, 1, -1, -1e5, 1e5);
  #controls;
  #element;
  #extent = 1000;
  #view = "3d";

  constructor(element, changed) {
    this.#element = element;
    this.#controls = [this.#perspective, this.#flat].map((camera) => {
      const controls = new OrbitControls(camera, element);
      controls.zoomToCursor = true;
      controls.minZoom = 0.05;
      controls.maxZoom = 2000;
      controls.addEventListener("change", changed);
      return controls;
    });
    this.#controls[1].enableRotate = false;
    this.#controls[1].mouseButtons.LEFT = this.#controls[1].mouseButtons.RIGHT;
    this.#controls[1].touches.ONE = PAN;
    this.#controls[0].minDistance = 20;
    this.#controls[0].maxDistance = 60_000;
  }

  get camera() {
    return this.#view === "3d" ? this.#perspective : this.#flat;
  }

  get #control() {
    return this.#controls[this.#view === "3d" ? 0 : 1];
  }

  /** Show `view` of an object of `size` {radius, length} (mm) from the default position. */
  look(view, { radius, length }) {
    this.#view = view;
    this.#controls.forEach((controls) => (controls.enabled = controls === this.#control));
    this.#extent = { "3d": 1.1 * length, xy: 1.15 * radius, rz: 1.15 * radius }[view];
    const wide = view === "rz" ? (1.1 * length) / this.#aspect : 0;
    this.#extent = Math.max(this.#extent, wide);
    this.#control.target.set(0, 0, 0);
    if (view === "3d") {
      const away = this.#extent / Math.tan((FIELD_OF_VIEW * Math.PI) / 360) / Math.min(this.#aspect, 1.35);
      this.#perspective.position.copy(new Vector3(0.78, 0.42, 0.72).normalize().multiplyScalar(away));
    } else {
      this.#flat.position.set(0, 0, 1);
      this.#flat.zoom = 1;
    }
    this.fit();
    this.#control.update();
  }

  get #aspect() {
    return this.#element.clientWidth / Math.max(this.#element.clientHeight, 1);
  }

  /** Adapt to the element's aspect ratio. */
  fit() {
    const half = this.#aspect < 1 && this.#view === "xy" ? this.#extent / this.#aspect : this.#extent;
    Object.assign(this.#flat, { left: -half * this.#aspect, right: half * this.#aspect, top: half, bottom: -half });
    this.#perspective.aspect = this.#aspect;
    this.camera.updateProjectionMatrix();
  }

  /** The camera's position as seven numbers. */
  get place() {
    const { position, zoom } = this.camera;
    return [...position.toArray(), ...this.#control.target.toArray(), zoom];
  }

  set place([x, y, z, ...rest]) {
    this.camera.position.set(x, y, z);
    this.#control.target.fromArray(rest);
    this.camera.zoom = rest[3] > 0 ? rest[3] : 1;
    this.camera.updateProjectionMatrix();
    this.#control.update();
  }

  /** Turn (in space) or move (on a plane) by steps to the right and upwards. */
  nudge(right, up) {
    const { camera } = this;
    const { target } = this.#control;
    if (this.#view === "3d") {
      const away = camera.position.clone().sub(target);
      const side = new Vector3().crossVectors(camera.up, away).normalize();
      away.applyAxisAngle(camera.up, right * TURN);
      const polar = away.angleTo(camera.up) - up * TURN;
      if (polar > 0.05 && polar < Math.PI - 0.05) away.applyAxisAngle(side, -up * TURN);
      camera.position.copy(target).add(away);
    } else {
      const step = new Vector3(right, up, 0).multiplyScalar((0.1 * this.#extent) / camera.zoom);
      camera.position.add(step);
      target.add(step);
    }
    this.#control.update();
  }

  /** Come nearer (1) or go away (-1). */
  zoom(steps) {
    const factor = CLOSER ** steps;
    if (this.#view === "3d") {
      const { target } = this.#control;
      this.camera.position.sub(target).divideScalar(factor).add(target);
    } else {
      this.camera.zoom *= factor;
      this.camera.updateProjectionMatrix();
    }
    this.#control.update();
  }
}
