// The list of shown objects, for selection by keyboard.

import { element, symbol, formatted } from "./elements.js";

const PAGE = 50;
const KINDS = {
  track: { layer: "tracks", heads: ["pt", "eta", "hits"], of: ({ tracks }, row) => [tracks.values.pt[row], tracks.values.eta[row], tracks.hitIds?.[row]?.length] },
  particle: { layer: "particles", heads: ["pt", "eta", "hits"], of: ({ particles }, row) => [particles.values.pt[row], particles.values.eta[row], particles.hits[row]] },
  jet: { layer: "jets", heads: ["pt", "eta", "phi"], of: ({ jets }, row) => [jets.values.pt[row], jets.values.eta[row], jets.phi[row]] },
  tower: { layer: "towers", heads: ["transverse energy", "eta", "phi"], of: ({ towers }, row) => [towers.bins[row].transverse, towers.bins[row].eta, towers.bins[row].phi] },
};

/** The table `table` of a page, filled with one kind of objects, the largest first; `choose` is called with what is chosen. */
export class Listing {
  #table;
  #more;
  #choose;
  #rows = [];
  #length = PAGE;
  #shown = null;

  constructor(table, more, choose) {
    this.#table = table;
    this.#more = more;
    this.#choose = choose;
    more.addEventListener("click", () => {
      this.#length += 4 * PAGE;
      this.#draw();
    });
    table.addEventListener("keydown", (event) => this.#step(event));
  }

  /** List the objects of `kind` that are `shown` (by layer). */
  fill(kind, objects, shown, pick) {
    const { layer, of } = KINDS[kind];
    if (this.#shown?.kind !== kind) this.#length = PAGE;
    this.#shown = { kind, objects, pick };
    this.#rows = Array.from(shown.get(layer).keys())
      .filter((row) => shown.get(layer)[row])
      .map((row) => ({ row, values: of(objects, row) }))
      .sort((a, b) => b.values[0] - a.values[0]);
    this.#draw();
  }

  /** Mark `pick`, if it is in the list. */
  mark(pick) {
    if (!this.#shown) return;
    this.#shown.pick = pick;
    for (const row of this.#table.tBodies[0].rows) {
      const chosen = pick?.kind === this.#shown.kind && String(pick.row) === row.dataset.row;
      row.classList.toggle("mine", chosen);
      row.querySelector("button").setAttribute("aria-pressed", String(chosen));
    }
  }

  #draw() {
    const { kind, pick } = this.#shown;
    const heads = KINDS[kind].heads.map((name) => element("th", { scope: "col", class: "num" }, ...symbol(name)));
    this.#table.tHead.replaceChildren(element("tr", {}, element("th", { scope: "col" }, "No."), ...heads));
    this.#table.tBodies[0].replaceChildren(...this.#rows.slice(0, this.#length).map((one) => this.#line(kind, one)));
    this.#more.hidden = this.#rows.length <= this.#length;
    this.mark(pick);
  }

  #line(kind, { row, values }) {
    const button = element("button", { type: "button", class: "bare", "aria-label": `Choose ${kind} ${row}` }, String(row));
    button.addEventListener("click", () => this.#choose({ kind, row }));
    const cells = values.map((value) => element("td", { class: "num" }, formatted(value, 3)));
    return element("tr", { "data-row": row }, element("td", {}, button), ...cells);
  }

  /** Arrow keys move between rows. */
  #step(event) {
    const way = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const next = way && event.target.closest("tbody tr")?.[way]?.querySelector("button");
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.click();
  }
}
