// The view as text in the fragment of the URL, so that a link shows the same view.

export const VIEWS = ["3d", "xy", "rz"];
export const COLOURS = ["volume", "layer", "particle", "pt", "time", "match"];
export const LAYERS = ["detector", "hits", "tracks", "particles", "towers", "jets"];
const KINDS = ["hit", "track", "particle", "tower", "jet"];

/** The defaults: particles are the truth of tracks, and would hide them. */
export function usual() {
  return {
    view: "3d",
    colour: "volume",
    ground: "",
    pt: 0,
    eta: null,
    time: null,
    hidden: new Set(["particles"]),
    off: new Set(),
    pick: null,
    camera: null,
  };
}

/** The view in `text` (with or without #); invalid values are the defaults. */
export function parse(text) {
  const given = new URLSearchParams(text.replace(/^#/, ""));
  const view = usual();
  view.view = oneOf(VIEWS, given.get("view"), view.view);
  view.colour = oneOf(COLOURS, given.get("colour"), view.colour);
  view.ground = oneOf(["dark", "light"], given.get("ground"), "");
  view.pt = number(given.get("pt"), { minimum: 0 }) ?? 0;
  view.eta = number(given.get("eta"), { minimum: 0 });
  view.time = span(given.get("time"));
  if (given.has("hide")) view.hidden = new Set(listed(given.get("hide")).filter((name) => LAYERS.includes(name)));
  view.off = new Set(listed(given.get("off")).map(Number).filter((volume) => Number.isInteger(volume) && volume >= 0));
  view.pick = picked(given.get("pick"));
  view.camera = numbers(given.get("camera"), 7);
  return view;
}

/** The text of a view, without default values. */
export function format(view) {
  const plain = usual();
  const query = new URLSearchParams();
  for (const name of ["view", "colour", "ground", "pt", "eta"]) {
    if (view[name] !== plain[name]) query.set(name, String(view[name]));
  }
  if (view.time) query.set("time", view.time.map((end) => (end === null ? "" : short(end))).join(","));
  if ([...view.hidden].sort().join() !== [...plain.hidden].join()) query.set("hide", [...view.hidden].sort().join(","));
  if (view.off.size) query.set("off", [...view.off].sort((a, b) => a - b).join(","));
  if (view.pick) query.set("pick", `${view.pick.kind}:${view.pick.row}`);
  if (view.camera) query.set("camera", view.camera.map(short).join(","));
  return query.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

function oneOf(choices, value, otherwise) {
  return choices.includes(value) ? value : otherwise;
}

function listed(text) {
  return text ? text.split(",") : [];
}

function number(text, { minimum = -Infinity } = {}) {
  const value = text === null || text === "" ? NaN : Number(text);
  return Number.isFinite(value) && value >= minimum ? value : null;
}

function numbers(text, count) {
  const values = listed(text).map((one) => number(one));
  return values.length === count && !values.includes(null) ? values : null;
}

/** [from, until], of which one may be null; null for no range. */
function span(text) {
  const ends = listed(text);
  const values = ends.map((one) => number(one));
  const sensible = ends.length === 2 && ends.every((one, place) => one === "" || values[place] !== null);
  return sensible && values.some((value) => value !== null) ? values : null;
}

function picked(text) {
  const [kind, row] = (text ?? "").split(":");
  return KINDS.includes(kind) && /^\d{1,9}$/.test(row ?? "") ? { kind, row: Number(row) } : null;
}

function short(value) {
  return String(Number(value.toPrecision(6)));
}
