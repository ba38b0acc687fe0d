// Outlines of the detector's layers and the beam per view: x, y, z of points of polylines.

const RING = 96;

/** Polylines of `detector` in `view`. */
export function outlines(detector, view) {
  if (view === "xy") return detector.layers.filter(({ kind }) => kind === "barrel").map((layer) => ring(middle(layer.r), 0));
  return detector.layers.flatMap(view === "rz" ? inRz : inSpace);
}

/** The beam, a little longer than the tracker on both sides. */
export function beam({ tracker }) {
  return [0, 0, -1.3 * tracker.length, 0, 0, 1.3 * tracker.length];
}

function inSpace({ kind, r, z }) {
  if (kind === "barrel") return [...z.map((end) => ring(middle(r), end)), ...staves(middle(r), z)];
  return r.map((radius) => ring(radius, middle(z)));
}

/** Both halves of a layer as r–z shows them, where y above and below the beam is given by the sign. */
function inRz({ kind, r, z }) {
  return [-1, 1].map((half) =>
    kind === "barrel"
      ? [0, half * middle(r), z[0], 0, half * middle(r), z[1]]
      : [0, half * r[0], middle(z), 0, half * r[1], middle(z)],
  );
}

function staves(radius, [from, to]) {
  return [0, 1, 2, 3, 4, 5, 6, 7].map((part) => {
    const [x, y] = [radius * Math.cos((part * Math.PI) / 4), radius * Math.sin((part * Math.PI) / 4)];
    return [x, y, from, x, y, to];
  });
}

function ring(radius, z) {
  return Array.from({ length: RING + 1 }, (_, part) => {
    const angle = (2 * Math.PI * part) / RING;
    return [radius * Math.cos(angle), radius * Math.sin(angle), z];
  }).flat();
}

function middle([low, high]) {
  return (low + high) / 2;
}
