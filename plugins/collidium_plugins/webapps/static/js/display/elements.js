// Creates elements without parsing text as markup.

/** Create an element with attributes (null is left out) and children: nodes or text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Symbols of quantities. */
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

/** Format a number: four significant digits, a true minus sign. */
export function formatted(value, digits = 4) {
  const number = typeof value === "bigint" ? value : Number(value);
  if (typeof number === "bigint" || Number.isInteger(number)) return String(number).replace("-", "−");
  return Number.isFinite(number) ? String(Number(number.toPrecision(digits))).replace("-", "−") : "–";
}

/** A name and its value with unit, for a description list. */
export function fact(name, value, unit = "") {
  const text = typeof value === "string" ? value : formatted(value);
  return [element("dt", {}, ...symbol(name)), element("dd", {}, unit ? `${text} ${unit}` : text)];
}
