// Elements of a page, made without ever reading text as markup.

/** An element with attributes (null: left out) and children: nodes or text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Symbols as physicists write them. */
export function symbol(name) {
  const italic = (text) => element("i", {}, text);
  const low = (text) => element("sub", {}, text);
  return {
    pt: () => [italic("p"), low("T")],
    eta: () => [italic("η")],
    phi: () => [italic("φ")],
    d0: () => [italic("d"), low("0")],
    z0: () => [italic("z"), low("0")],
    x: () => [italic("x")],
    y: () => [italic("y")],
    z: () => [italic("z")],
    r: () => [italic("r")],
    energy: () => [italic("E")],
    "transverse energy": () => [italic("E"), low("T")],
    mass: () => [italic("m")],
    charge: () => [italic("q")],
    time: () => [italic("t")],
  }[name]?.() ?? [name];
}

/** A number as people read it: four digits that count, a true minus. */
export function formatted(value, digits = 4) {
  const number = typeof value === "bigint" ? value : Number(value);
  if (typeof number === "bigint" || Number.isInteger(number)) return String(number).replace("-", "−");
  return Number.isFinite(number) ? String(Number(number.toPrecision(digits))).replace("-", "−") : "–";
}

/** A name and its value with its unit, for a list of facts. */
export function fact(name, value, unit = "") {
  const text = typeof value === "string" ? value : formatted(value);
  return [element("dt", {}, ...symbol(name)), element("dd", {}, unit ? `${text} ${unit}` : text)];
}
