// One draw call per kind of objects. Positions are written once per event, visibility and colours when they
// change, and nothing per frame.

import {
  BufferAttribute,
  BufferGeometry,
  DoubleSide,
  GLSL3,
  InstancedBufferAttribute,
  InstancedBufferGeometry,
  Mesh,
  Points,
  ShaderMaterial,
} from "../../vendor/three.js";
import { sideOf } from "./projection.js";
import { HITS, LINES, SOLIDS } from "./shaders.js";

/** All hits of an event. */
export function hitBatch(hits, uniforms) {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(hits.position, 3));
  return batch(Points, geometry, material(HITS, uniforms), Uint32Array.from({ length: hits.count }, (_, hit) => hit));
}

/** Polylines, one for each object. */
export function lineBatch(lines, uniforms) {
  const segments = lines.reduce((sum, line) => sum + Math.max(line.length / 3 - 1, 0), 0);
  const [from, to] = [new Float32Array(3 * segments), new Float32Array(3 * segments)];
  const [side, object] = [new Float32Array(segments), new Uint32Array(segments)];
  let at = 0;
  lines.forEach((line, row) => {
    for (let point = 0; point + 3 < line.length; point += 3, at += 1) {
      from.set(line.slice(point, point + 3), 3 * at);
      to.set(line.slice(point + 3, point + 6), 3 * at);
      side[at] = sideOf(line[point + 1] + line[point + 4]);
      object[at] = row;
    }
  });
  const geometry = new InstancedBufferGeometry();
  // A strip between the ends of a segment: x is the end, y the side of the line.
  geometry.setAttribute("position", new BufferAttribute(new Float32Array([0, -1, 0, 0, 1, 0, 1, -1, 0, 1, 1, 0]), 3));
  geometry.setIndex([0, 1, 2, 2, 1, 3]);
  geometry.setAttribute("from", new InstancedBufferAttribute(from, 3));
  geometry.setAttribute("to", new InstancedBufferAttribute(to, 3));
  geometry.setAttribute("side", new InstancedBufferAttribute(side, 1));
  geometry.instanceCount = segments;
  return batch(Mesh, geometry, material(LINES, uniforms), object, InstancedBufferAttribute);
}

/** Triangles of towers or jets. */
export function solidBatch({ position, shade, side, object }, uniforms) {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(position), 3));
  geometry.setAttribute("shade", new BufferAttribute(new Float32Array(shade), 1));
  geometry.setAttribute("side", new BufferAttribute(new Float32Array(side), 1));
  return batch(Mesh, geometry, material(SOLIDS, uniforms), Uint32Array.from(object));
}

function material({ vertex, fragment }, uniforms) {
  const see = uniforms.opacity && uniforms.opacity.value < 1;
  return new ShaderMaterial({
    glslVersion: GLSL3,
    vertexShader: vertex,
    fragmentShader: fragment,
    uniforms,
    side: DoubleSide,
    transparent: Boolean(see),
    depthWrite: !see,
  });
}

/** A drawable whose elements belong to objects: element i to row `object[i]`. */
function batch(Kind, geometry, material, object, Attribute = BufferAttribute) {
  const tint = new Attribute(new Uint8Array(3 * object.length), 3, true);
  const shown = new Attribute(new Uint8Array(object.length), 1);
  geometry.setAttribute("tint", tint);
  geometry.setAttribute("shown", shown);
  const drawable = new Kind(geometry, material);
  drawable.frustumCulled = false; // shaders move points, so their bounding boxes are wrong
  return {
    drawable,
    show(rows) {
      for (let place = 0; place < object.length; place += 1) shown.array[place] = rows[object[place]];
      shown.needsUpdate = true;
    },
    paint(colours) {
      for (let place = 0; place < object.length; place += 1) {
        const row = 3 * object[place];
        tint.array[3 * place] = colours[row];
        tint.array[3 * place + 1] = colours[row + 1];
        tint.array[3 * place + 2] = colours[row + 2];
      }
      tint.needsUpdate = true;
    },
    dispose() {
      geometry.dispose();
      material.dispose();
    },
  };
}
