// The page's address: which event, and which view of it. Going back shows what was there before.

import { format, parse } from "./view_state.js";

export class Address {
  #first;

  /** `first`: what the server chose where the address says nothing: {repo, config, event}. */
  constructor(first) {
    this.#first = { repo: first.repo, config: first.config, event: Number(first.event) };
  }

  /** Which event the address names. */
  get source() {
    const asked = new URLSearchParams(location.search);
    const event = asked.get("event") ?? "";
    if (!asked.get("config")) return this.#first;
    const { repo = "", config } = Object.fromEntries(asked);
    return { repo, config, event: /^\d{1,10}$/.test(event) ? Number(event) : this.#first.event };
  }

  get view() {
    return parse(location.hash);
  }

  /** Write what is shown; `push`: as a step that one can go back from. */
  write(source, view, push) {
    const address = `/events?${new URLSearchParams(source)}`;
    const fragment = format(view);
    const full = fragment ? `${address}#${fragment}` : address;
    if (full === location.pathname + location.search + location.hash) return;
    history[push ? "pushState" : "replaceState"](null, "", full);
  }
}
