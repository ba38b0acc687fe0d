// Downloads of the picture, the link, and the event in two formats.

import { picture, save } from "./exporting.js";
import { addressOf } from "./loading.js";

const $ = (id) => document.getElementById(id);

/** URLs and names of the files of the event `source`. */
export function offerDownloads(api, source) {
  const name = nameOf(source);
  Object.assign($("arrow"), { href: addressOf(api, source), download: `${name}.arrows` });
  Object.assign($("phoenix"), { href: addressOf(api, source, "phoenix"), download: `${name}.json` });
}

/** Save the picture; `revision` is the dataset's, if known. */
export async function savePicture({ below, above }, source, revision, ground) {
  const from = [source.repo, revision?.slice(0, 12)].filter(Boolean).join(" @ ");
  const lines = [`Event ${source.event} of ${source.config}`, `${from} · ${location.host} · Collidium`];
  save(await picture(below, above, lines, ground), `${nameOf(source)}.png`);
  announce("The picture was saved.");
}

export async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    announce("The link is on the clipboard.");
  } catch {
    announce("The browser does not let the page copy; the address bar has the link.");
  }
}

function nameOf({ config, event }) {
  return `${config}-event-${event}`;
}

function announce(text) {
  $("taken").textContent = text;
}
