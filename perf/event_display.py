"""What a frame of the event display costs, and how long an event takes from bytes to its first frame.

python perf/event_display.py [--quick]

A made-up event of 120,000 hits on 3,000 tracks, drawn in Chromium. Without a graphics card the browser draws
in software; so next to the time of a whole frame stands what the display itself adds to it, which no card
takes away: the time in its own code, draw calls, and buffers that are written anew.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collidium.contracts import FIELD_TESLA
from collidium.event_display import tables as stream
from collidium.testing.browser import chromium
from collidium.testing.server import ServerProcess

HITS_OF_TRACK: Final = 40
PT: Final = (0.5, 20.0)  # GeV
LAYERS: Final = np.linspace(30.0, 1020.0, HITS_OF_TRACK)  # mm

#: Draws the event on a canvas of its own, with the very modules of the page.
MEASURE: Final = """
async ({ frames, address }) => {
  const load = (name) => import(`/web/static/js/display/${name}.js`);
  const [{ readTables }, { objectsOf }, { detectorOf }, { Stage }] = await Promise.all(
    ["tables", "objects", "detector", "stage"].map(load));
  const bytes = new Uint8Array(await (await fetch(address)).arrayBuffer());
  const known = await (await fetch("/web/static/detectors/odd.json")).json();
  const at = [performance.now()];
  const event = readTables(bytes);
  at.push(performance.now());
  const detector = detectorOf(event, known);
  const objects = objectsOf(event, detector);
  at.push(performance.now());
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 1280, height: 800 });
  let writes = 0;
  for (const name of ["bufferData", "bufferSubData"]) {
    const usual = WebGL2RenderingContext.prototype[name];
    WebGL2RenderingContext.prototype[name] = function (...all) {
      writes += 1;
      return usual.apply(this, all);
    };
  }
  const stage = new Stage(canvas, () => {});
  stage.load(objects, detector);
  stage.ground = "dark";
  stage.resize(1280, 800);
  stage.view = "3d";
  for (const name of ["hits", "tracks"]) {
    stage.show(name, new Uint8Array(objects[name].count).fill(1));
    stage.paint(name, new Uint8Array(3 * objects[name].count).fill(200));
  }
  const gl = canvas.getContext("webgl2");
  const drawn = () => gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  stage.render();
  drawn();
  at.push(performance.now());
  writes = 0;
  const [own, whole] = [[], []];
  for (let frame = 0; frame < frames; frame += 1) {
    stage.cameras.nudge(1, 0);
    const begin = performance.now();
    stage.render();
    own.push(performance.now() - begin);
    drawn();
    whole.push(performance.now() - begin);
  }
  const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
  const [reading, computing, building] = [at[1] - at[0], at[2] - at[1], at[3] - at[2]];
  const [ours, all] = [median(own), median(whole)];
  return { reading, computing, building, own: ours, whole: all, writes, calls: stage.calls };
}
"""


def event(tracks: int) -> bytes:
    """Hits on helices from the origin, as the server sends them."""
    random = np.random.default_rng(7)
    pt = np.exp(random.uniform(*np.log(PT), tracks))
    phi, eta = random.uniform(-np.pi, np.pi, tracks), random.uniform(-2.0, 2.0, tracks)
    charge = random.choice([-1.0, 1.0], tracks)
    theta = 2.0 * np.arctan(np.exp(-eta))
    bend = -charge[:, None] * 0.299792458e-3 * FIELD_TESLA * LAYERS / (2.0 * pt[:, None])
    azimuth = phi[:, None] + np.arcsin(np.clip(bend, -1.0, 1.0))
    x, y, z = LAYERS * np.cos(azimuth), LAYERS * np.sin(azimuth), LAYERS * np.sinh(eta)[:, None]
    number = np.arange(tracks, dtype=np.uint64)
    hits: dict[str, Any] = {
        "x": x.ravel().astype(np.float32),
        "y": y.ravel().astype(np.float32),
        "z": z.ravel().astype(np.float32),
        "particle_id": np.repeat(number, HITS_OF_TRACK),
        "volume_id": np.tile(np.arange(HITS_OF_TRACK) // 5, tracks).astype(np.uint8),
        "layer_id": np.tile(np.arange(HITS_OF_TRACK), tracks).astype(np.uint16),
    }
    found: dict[str, Any] = {
        "d0": np.zeros(tracks, np.float32),
        "z0": np.zeros(tracks, np.float32),
        "phi": phi.astype(np.float32),
        "theta": theta.astype(np.float32),
        "qop": (charge * np.sin(theta) / pt).astype(np.float32),
        "majority_particle_id": number,
    }
    particles = {"particle_id": number, "pt": pt.astype(np.float32)}
    tables = {"particles": pa.table(particles), "tracker_hits": pa.table(hits), "tracks": pa.table(found)}
    return stream.write(tables, {"repo": "made/up", "config": "made_up", "event_id": "0"})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    quick = parser.parse_args().quick
    tracks, frames = (100, 3) if quick else (3000, 40)
    content = event(tracks)
    with (
        tempfile.TemporaryDirectory() as directory,
        ServerProcess(Path(directory)) as server,
        chromium() as browser,
    ):
        page = browser.new_page()
        page.route("**/made-up", lambda route: route.fulfill(body=content))
        page.goto(f"{server.base_url}/docs")
        measured = page.evaluate(MEASURE, {"frames": frames, "address": "/made-up"})
    print(f"{tracks * HITS_OF_TRACK} hits, {tracks} tracks, {len(content) / 1e6:.2f} MB\n")
    print("| | |\n|---|---:|")
    print(f"| tables read from the bytes, ms | {measured['reading']:.1f} |")
    print(f"| helices, values and layers computed, ms | {measured['computing']:.0f} |")
    print(f"| buffers built and the first frame drawn in software, ms | {measured['building']:.0f} |")
    print(f"| a frame, drawn in software, ms | {measured['whole']:.0f} |")
    print(f"| of it in the display's own code, ms | {measured['own']:.2f} |")
    print(f"| draw calls a frame | {measured['calls']} |")
    print(f"| buffers written in {frames} frames | {measured['writes']} |")


if __name__ == "__main__":
    main()
