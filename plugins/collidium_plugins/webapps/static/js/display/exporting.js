// Exports the picture as a file with a caption.

import { INK } from "./colours.js";

const MARGIN = 12;
const LINE = 18;

/** A PNG of both canvases, overlaid, with `lines` of text below. */
export function picture(below, above, lines, ground) {
  const ratio = below.width / below.clientWidth;
  const canvas = document.createElement("canvas");
  const caption = (2 * MARGIN + lines.length * LINE) * ratio;
  canvas.width = below.width;
  canvas.height = below.height + caption;
  const context = canvas.getContext("2d");
  context.fillStyle = INK[ground].ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(below, 0, 0);
  context.drawImage(above, 0, 0, below.width, below.height);
  context.scale(ratio, ratio);
  context.textBaseline = "top";
  lines.forEach((line, place) => {
    context.font = `${place ? "" : "600 "}13px system-ui, sans-serif`;
    context.fillStyle = place ? INK[ground].faint : INK[ground].text;
    context.fillText(line, MARGIN, below.clientHeight + MARGIN + place * LINE, below.clientWidth - 2 * MARGIN);
  });
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Save `content`, a Blob or a URL, as `name`. */
export function save(content, name) {
  const address = content instanceof Blob ? URL.createObjectURL(content) : content;
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  if (content instanceof Blob) setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
