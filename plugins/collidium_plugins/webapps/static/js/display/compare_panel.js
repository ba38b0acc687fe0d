// The panel in which a file's predictions are compared with the truth of the event that is shown.

import { compare } from "./comparison.js";
import { element, fact, formatted } from "./elements.js";
import { tracksIn, UnusableFile } from "./predictions.js";
import { isWithheld } from "./tables.js";

const $ = (id) => document.getElementById(id);
const HINT = $("compare-hint")?.textContent;
const NO_TRUTH = "This event has no true particles, so there is nothing to compare with.";

export class ComparePanel {
  #source = null;
  #hits = null;
  #refused = "";
  #compared;

  /** `compared` is given every comparison that is made, and null where there is none any more. */
  constructor(compared) {
    this.#compared = compared;
    $("predictions").addEventListener("change", ({ target }) => target.files[0] && this.#read(target.files[0]));
    const drop = $("drop");
    drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      drop.dataset.over = "";
    });
    drop.addEventListener("dragleave", () => delete drop.dataset.over);
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      delete drop.dataset.over;
      if (event.dataTransfer.files[0]) this.#read(event.dataTransfer.files[0]);
    });
  }

  /** Another event: whether it can be compared with, and nothing compared yet. */
  load(source, event, hits) {
    this.#source = source;
    this.#hits = hits;
    this.#refused = isWithheld(event) ? scored(source.event) : hits.particle ? "" : NO_TRUTH;
    $("compare-hint").textContent = this.#refused || HINT;
    $("predictions").disabled = Boolean(this.#refused);
    $("predictions").value = "";
    this.#clear();
  }

  /** No event, and so nothing to compare with. */
  close() {
    this.#hits = null;
    $("predictions").disabled = true;
    this.#clear();
  }

  async #read(file) {
    const hits = this.#hits;
    if (!hits) return;
    this.#clear();
    this.#compared(null);
    const { event } = this.#source;
    try {
      if (this.#refused) throw new UnusableFile(this.#refused);
      const tracks = await tracksIn(file, event);
      if (hits !== this.#hits) return; // another event came while the file was read
      const comparison = compare(hits.id ?? hits.particle.keys(), hits.particle, tracks);
      $("comparison").replaceChildren(...nodes(comparison.facts));
      this.#compared(comparison);
    } catch (error) {
      this.#report(error instanceof UnusableFile ? error.message : `The file cannot be read: ${error.message}`);
    }
  }

  /** What an earlier file gave says nothing of the next one. */
  #clear() {
    $("comparison").replaceChildren();
    this.#report("");
  }

  #report(problem) {
    $("compare-problem").textContent = problem;
    $("compare-problem").hidden = !problem;
  }
}

function scored(event) {
  return `A benchmark is scored on event ${event}: its truth stays on the server, and nothing can be compared. Choose a training event.`;
}

function nodes(facts) {
  const rows = [
    ["submitted tracks", facts.tracks],
    ["hits in a track, on average", facts.hitsPerTrack],
    ["purity, on average", `${formatted(100 * facts.purity, 3)} %`],
    ["tracks of one particle alone", facts.pure],
    ["particles with several tracks", facts.several],
    ["hits in a track of their particle", facts.own],
    ["hits in a track of another one", facts.other],
    ["hits in no track", facts.leftOut],
    ["noise hits in a track", facts.noise],
  ];
  const meaning =
    "A track’s particle is the one with most of its hits; purity is its share of them. These are no scores: scores follow other rules, and are the server’s.";
  return [...rows.flatMap(([name, value]) => fact(name, value)), element("dt", { class: "title hint" }, meaning)];
}
