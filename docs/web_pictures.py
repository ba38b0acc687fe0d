"""Makes the pictures of the web apps: ``python docs/web_pictures.py``.

A real server with accounts, submissions, models and orders that are always the same but for their days, and
every page of it in Chromium, by day and by night.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import HfApi
from PIL import Image
from playwright.sync_api import Browser, ViewportSize

from collidium.client import Client
from collidium.contracts.tables import flatten
from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.browser import PATIENCE, chromium, sign_in
from collidium.testing.server import ServerProcess
from collidium_plugins.local_hub import accounts
from collidium_plugins.local_hub.store import Store
from collidium_tasks.tracking import baselines

PICTURES: Final = Path(__file__).with_name("pictures")
SIZE: Final[ViewportSize] = {"width": 1280, "height": 800}
#: What is shown: a name, and the address of a page.
PAGES: Final = {
    "front": "/",
    "events": "/events",
    "simulate": "/simulate",
    "leaderboard": "/leaderboard/tracking",
    "submission": "/leaderboard/submissions/{submission_id}",
    "submit": "/leaderboard/tracking/submit",
    "models": "/models",
}
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
SETTINGS: Final = {"PLATFORM_MOCK_SECONDS": "0.1", "PLATFORM_MODEL_UNCONFINED": "true"}
#: Who submits one after the other, and the share of hits that their model puts on the right track.
PEOPLE: Final = {"dirac": 0.8, "chien": 0.89, "bohr": 0.93, "emmy": 0.91, "anna": 0.98}
#: Models on the hub, and what they say of themselves.
MODELS: Final = {
    "anna/helix-net": "A graph network that grows helices from seeds.",
    "bohr/slot-tracker": "Slot attention over hits: one slot, one track.",
    "chien/hough-again": "A Hough transform with a learned binning.",
}


@dataclass(frozen=True, slots=True)
class Furnished:
    """What a furnished server has: hub tokens by account, and ids to build addresses from."""

    tokens: Mapping[str, str]
    submission_id: str
    request_id: str


def make(directory: Path) -> None:
    """Write all pictures of the web apps into ``directory``."""
    with tempfile.TemporaryDirectory() as home, ServerProcess(Path(home), env=SETTINGS) as server:
        furnished = furnish(server)
        with chromium() as browser:
            _pictures(browser, server.base_url, furnished, directory, PAGES)
            model = f"/leaderboard/submissions/{run_model(server, furnished.tokens['anna'])}#model"
            _pictures(browser, server.base_url, furnished, directory, {"model": model})


def _pictures(
    browser: Browser, base_url: str, furnished: Furnished, directory: Path, pages: Mapping[str, str]
) -> None:
    with browser.new_context(base_url=base_url, viewport=SIZE) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        sign_in(page, furnished.tokens["anna"])
        page.emulate_media(reduced_motion="reduce")
        for name, address in pages.items():
            page.goto(address.format(submission_id=furnished.submission_id), wait_until="networkidle")
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                _write(page.screenshot(animations="disabled"), directory / f"web-{name}-{theme}.png")


def _write(screenshot: bytes, path: Path) -> None:
    """As an image of 256 colours of its own: smaller, and looking the same."""
    picture = Image.open(BytesIO(screenshot)).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def furnish(server: ServerProcess, *, order: bool = True) -> Furnished:
    """Fill a fresh server: a benchmark with submissions, models on the hub, an order that was carried out."""
    events = ("--config", "ttbar_pu0", "--events", "3:5")
    done = server.run("truth", "import", "tracking", "--from", str(EVENTS_DIRECTORY), *events)
    if done.returncode:
        raise RuntimeError(done.stderr)
    with closing(Store(server.data_dir / "hub")) as store, store.database.writing() as db:
        tokens = {name: accounts.make_token(db, accounts.add(db, name)) for name in PEOPLE}
    for repo, text in MODELS.items():
        _add_model(HfApi(f"{server.base_url}/hub", tokens[repo.partition("/")[0]]), repo, text)
    for name, share in PEOPLE.items():
        model = next((repo for repo in MODELS if repo.startswith(f"{name}/")), None)
        with Client(server.base_url, tokens[name]) as client:
            receipt = client.submit("tracking", reconstruction(share), model_repo=model)
    return Furnished(tokens, receipt.submission_id, _order(server, tokens["anna"]) if order else "")


def run_model(server: ServerProcess, token: str) -> str:
    """Have the server run an example of models; its submission. Needs onnxruntime."""
    with tempfile.TemporaryDirectory() as directory, Client(server.base_url, token) as client:
        for name, content in baselines.labels_model("tracking").items():
            Path(directory, name).write_bytes(content)
        sent = client.submit_model(
            "tracking", Path(directory, "model.onnx"), Path(directory, "manifest.toml")
        )
        return client.wait_for_model(sent.evaluation_id).submission_id or ""


def _order(server: ServerProcess, token: str) -> str:
    with Client(server.base_url, token) as client:
        ordered = client.simulate(channel="ttbar", events=10, pileup=0)
        return client.wait(ordered.request_id).request_id


def _add_model(hub: HfApi, repo: str, text: str) -> None:
    hub.create_repo(repo)
    card = f"---\ntags:\n- collidium\n- collidium-task:tracking\n---\n# {repo}\n\n{text}\n"
    hub.upload_file(path_or_fileobj=card.encode(), path_in_repo="README.md", repo_id=repo)


def reconstruction(share: float) -> pa.Table:
    """Predictions of events 3 and 4 that have a share of the hits on their tracks, and the others on none."""
    hits = flatten(pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet"), ["hit_id", "particle_id"])
    hits = hits.filter(pa.array(np.asarray(hits.column("event_id")) >= 3))
    kept = np.random.default_rng(round(1000 * share)).random(hits.num_rows) < share
    track_id = np.where(kept, np.asarray(hits.column("particle_id")).astype(np.int64), -1)
    return hits.select(["event_id", "hit_id"]).append_column("track_id", pa.array(track_id))


if __name__ == "__main__":
    make(PICTURES)
