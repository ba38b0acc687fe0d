// The panel that compares a file of predictions with the truth of the shown event.

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

  /** `compared` is called with each comparison, and with null when there is none any more. */
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

  /** Set the event and clear the comparison. */
  load(source, event, hits) {
    this.#source = source;
    this.#hits = hits;
    this.#refused = isWithheld(event) ? scored(source.event) : hits.particle ? "" : NO_TRUTH;
    $("compare-hint").textContent = this.#refused || HINT;
    $("predictions").disabled = Boolean(this.#refused);
    $("predictions").value = "";
    this.#clear();
  }

  /** Remove the event and the comparison. */
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
      if (hits !== this.#hits) return; // the event changed while the file was read
      const comparison = compare(hits.id ?? hits.particle.keys(), hits.particle, tracks);
      $("comparison").replaceChildren(...nodes(comparison.facts));
      this.#compared(comparison);
    } catch (error) {
      this.#report(error instanceof UnusableFile ? error.message : `The file cannot be read: ${error.message}`);
    }
  }

  /** Remove results of an earlier file. */
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
