// The URL of the page, with the event and the view; each is a step of the browser's history.

import { format, parse } from "./view_state.js";

export class Address {
  #first;

  /** `first`: the event if the URL names none: {repo, config, event}. */
  constructor(first) {
    this.#first = { repo: first.repo, config: first.config, event: Number(first.event) };
  }

  /** The event in the URL. */
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

  /** Update the URL; `push` adds a step to the history. */
  write(source, view, push) {
    const address = `/events?${new URLSearchParams(source)}`;
    const fragment = format(view);
    const full = fragment ? `${address}#${fragment}` : address;
    if (full === location.pathname + location.search + location.hash) return;
    history[push ? "pushState" : "replaceState"](null, "", full);
  }
}
