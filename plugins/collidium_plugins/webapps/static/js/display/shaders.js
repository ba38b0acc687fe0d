// Shaders. All of them place points by the same rule, selected by the number of the view, so that no buffer is
// rebuilt for another view.

/** The numbers of views in shaders. */
export const VIEW_NUMBERS = { "3d": 0, xy: 1, rz: 2 };

// r–z: z to the right, and the distance from the beam upwards or downwards by the half that something lies in.
const PLACED = /* glsl */ `
uniform int view;
vec3 placed(vec3 p, float side) {
  if (view == 1) return vec3(p.xy, 0.0);
  if (view == 2) return vec3(p.z, side * length(p.xy), 0.0);
  return p;
}
float half_of(vec3 p) { return p.y < 0.0 ? -1.0 : 1.0; }
// Outside of the clip space: the cheapest way to hide a point.
const vec4 NOWHERE = vec4(2.0, 2.0, 2.0, 1.0);
`;

export const HITS = {
  vertex: /* glsl */ `${PLACED}
in vec3 tint;
in float shown;
uniform float size;
out vec3 colour;
void main() {
  colour = tint;
  gl_PointSize = size;
  gl_Position = shown > 0.5 ? projectionMatrix * modelViewMatrix * vec4(placed(position, half_of(position)), 1.0) : NOWHERE;
}`,
  fragment: /* glsl */ `
in vec3 colour;
out vec4 drawn;
void main() {
  if (length(gl_PointCoord - 0.5) > 0.5) discard;
  drawn = vec4(colour, 1.0);
}`,
};

// A line is a strip of two triangles between two points, of a given width on the screen.
export const LINES = {
  vertex: /* glsl */ `${PLACED}
in vec3 from;
in vec3 to;
in vec3 tint;
in float shown;
in float side;
uniform vec2 screen;
uniform float width;
out vec3 colour;
void main() {
  colour = tint;
  if (shown < 0.5) { gl_Position = NOWHERE; return; }
  vec4 a = projectionMatrix * modelViewMatrix * vec4(placed(from, side), 1.0);
  vec4 b = projectionMatrix * modelViewMatrix * vec4(placed(to, side), 1.0);
  float near = 1e-3;
  if (a.w < near && b.w < near) { gl_Position = NOWHERE; return; }
  if (a.w < near) a = mix(b, a, (b.w - near) / (b.w - a.w));
  if (b.w < near) b = mix(a, b, (a.w - near) / (a.w - b.w));
  vec2 along = (b.xy / b.w - a.xy / a.w) * screen;
  along = length(along) > 1e-6 ? normalize(along) : vec2(1.0, 0.0);
  vec2 across = vec2(-along.y, along.x) * width / screen;
  vec4 end = position.x < 0.5 ? a : b;
  gl_Position = end + vec4(across * position.y * end.w, 0.0, 0.0);
}`,
  fragment: /* glsl */ `
in vec3 colour;
uniform float opacity;
out vec4 drawn;
void main() { drawn = vec4(colour, opacity); }`,
};

// Anything of triangles whose corners carry their colour.
export const SOLIDS = {
  vertex: /* glsl */ `${PLACED}
in vec3 tint;
in float shown;
in float side;
in float shade;
out vec3 colour;
void main() {
  colour = view == 0 ? tint * shade : tint;
  gl_Position = shown > 0.5 ? projectionMatrix * modelViewMatrix * vec4(placed(position, side), 1.0) : NOWHERE;
}`,
  fragment: /* glsl */ `
in vec3 colour;
uniform float opacity;
out vec4 drawn;
void main() { drawn = vec4(colour, opacity); }`,
};
