// The exact view as text: what stands behind the # of the page's address, so that a link shows the same to others.

export const VIEWS = ["3d", "xy", "rz"];
export const COLOURS = ["volume", "layer", "particle", "pt", "time", "match"];
export const LAYERS = ["detector", "hits", "tracks", "particles", "towers", "jets"];
const KINDS = ["hit", "track", "particle", "tower", "jet"];

/** What is shown when nobody said anything: particles are the truth of tracks, and would hide them. */
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

/** The view that `text` (with or without #) tells; what makes no sense is as usual. */
export function parse(text) {
  const told = new URLSearchParams(text.replace(/^#/, ""));
  const view = usual();
  view.view = oneOf(VIEWS, told.get("view"), view.view);
  view.colour = oneOf(COLOURS, told.get("colour"), view.colour);
  view.ground = oneOf(["dark", "light"], told.get("ground"), "");
  view.pt = number(told.get("pt"), { least: 0 }) ?? 0;
  view.eta = number(told.get("eta"), { least: 0 });
  view.time = span(told.get("time"));
  if (told.has("hide")) view.hidden = new Set(listed(told.get("hide")).filter((name) => LAYERS.includes(name)));
  view.off = new Set(listed(told.get("off")).map(Number).filter((volume) => Number.isInteger(volume) && volume >= 0));
  view.pick = picked(told.get("pick"));
  view.camera = numbers(told.get("camera"), 7);
  return view;
}

/** The text of a view; what is as usual is left out. */
export function format(view) {
  const plain = usual();
  const told = new URLSearchParams();
  for (const name of ["view", "colour", "ground", "pt", "eta"]) {
    if (view[name] !== plain[name]) told.set(name, String(view[name]));
  }
  if (view.time) told.set("time", view.time.map((end) => (end === null ? "" : short(end))).join(","));
  if ([...view.hidden].sort().join() !== [...plain.hidden].join()) told.set("hide", [...view.hidden].sort().join(","));
  if (view.off.size) told.set("off", [...view.off].sort((a, b) => a - b).join(","));
  if (view.pick) told.set("pick", `${view.pick.kind}:${view.pick.row}`);
  if (view.camera) told.set("camera", view.camera.map(short).join(","));
  return told.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

function oneOf(choices, told, otherwise) {
  return choices.includes(told) ? told : otherwise;
}

function listed(text) {
  return text ? text.split(",") : [];
}

function number(text, { least = -Infinity } = {}) {
  const value = text === null || text === "" ? NaN : Number(text);
  return Number.isFinite(value) && value >= least ? value : null;
}

function numbers(text, count) {
  const values = listed(text).map((one) => number(one));
  return values.length === count && !values.includes(null) ? values : null;
}

/** [from, until], of which one may be null: open; null where nothing is asked. */
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
