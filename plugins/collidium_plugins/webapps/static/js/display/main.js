// Starts the event display of a page.

import { Address } from "./address.js";
import { Display } from "./display.js";
import { FlatStage } from "./flat_stage.js";
import { prepareKeys } from "./keyboard.js";
import { Stage } from "./stage.js";

const root = document.getElementById("display");
const [below, above] = [document.getElementById("picture"), document.getElementById("overlay")];

/** The known detector; null if its file cannot be loaded. */
async function knownDetector(address) {
  try {
    const response = await fetch(address);
    return response.ok ? await response.json() : { layers: [] };
  } catch {
    return { layers: [] };
  }
}

/** A stage with WebGL, or with a 2D canvas if the browser has none. */
function stageOn(canvas, drawn) {
  const offered = document.createElement("canvas").getContext("webgl2");
  offered?.getExtension("WEBGL_lose_context")?.loseContext();
  return offered ? new Stage(canvas, drawn) : new FlatStage(canvas, drawn);
}

if (root) {
  const detector = await knownDetector(root.dataset.detector);
  const display = new Display({
    api: document.body.dataset.api,
    address: new Address(root.dataset),
    canvases: { below, above },
    detector,
    makeStage: (drawn) => stageOn(below, drawn),
  });
  prepareKeys(document.getElementById("stage"), display);
  await display.open();
}
