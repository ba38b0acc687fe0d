// Loads an event from the backend, with error messages for users.

import { readTables } from "./tables.js";

/** No event can be shown: a title, advice, and whether a retry may help. */
export class NoEvent extends Error {
  constructor(title, detail, again = false) {
    super(detail);
    this.title = title;
    this.again = again;
  }
}

/** The URL of an event; `format` is "phoenix", else Arrow tables. */
export function addressOf(api, { repo, config, event }, format = "") {
  const asked = new URLSearchParams();
  if (repo) asked.set("repo", repo);
  if (format) asked.set("format", format);
  const query = asked.size ? `?${asked}` : "";
  return `${api}/v1/datasets/${encodeURIComponent(config)}/events/${event}${query}`;
}

/** Load the tables of the event at `address`; calls `progress(bytes, total)`. Throws NoEvent. */
export async function fetchEvent(address, { progress, signal }) {
  const response = await asked(address, signal);
  if (!response.ok) throw await refused(response);
  const bytes = await received(response, progress);
  try {
    const event = readTables(bytes);
    if (!Object.keys(event.tables).length) throw new RangeError("there is none");
    return event;
  } catch (error) {
    throw new NoEvent("This event cannot be read", `What the backend sent is not a list of tables: ${error.message}`);
  }
}

async function asked(address, signal) {
  try {
    return await fetch(address, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new NoEvent("The backend cannot be reached", "Look at your connection, then try again.", true);
  }
}

/** The message of the backend's problem document. */
async function refused(response) {
  const { title, detail } = await response.json().catch(() => ({}));
  const again = response.status === 429 || response.status >= 500;
  return new NoEvent(
    response.status === 404 ? "There is no such event" : (title ?? "The backend refused"),
    detail ?? `It answered ${response.status}.`,
    again,
  );
}

async function received(response, progress) {
  const total = Number(response.headers.get("Content-Length")) || null;
  const reader = response.body.getReader();
  const parts = [];
  let size = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parts.push(part.value);
      size += part.value.length;
      progress(size, total);
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new NoEvent("The connection broke off", "The event came only in part.", true);
  }
  const bytes = new Uint8Array(size);
  parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
}
