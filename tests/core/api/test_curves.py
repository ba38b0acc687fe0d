"""Scores in bins: file, scorer, database, API, command and page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.contracts.tables import flatten
from collidium.scoring.uncertainty import MIN_ENTRIES
from collidium.testing.server import ServerProcess
from collidium.testing.synthetic import SyntheticEvents

from .conftest import SUBMIT, OpenPlatform, ok, parquet, signed_in

EVENTS, HITS = 24, 1500
MADE = SyntheticEvents(hits=HITS).tables(range(EVENTS))


@pytest.fixture(scope="module")
def server(open_platform: OpenPlatform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("events")
    for name, table in MADE.items():
        pq.write_table(table, directory / f"{name}.parquet")
    with open_platform(tmp_path_factory.mktemp("platform")) as opened:
        done = opened.run("truth", "import", "tracking", "--from", str(directory), "--events", f"0:{EVENTS}")
        assert done.returncode == 0, done.stderr
        yield opened


def submit(client: httpx.Client, keep: float) -> Any:
    """Submit tracks of the particles, a part of them all."""
    flat = flatten(MADE["tracker_hits"], ["particle_id"])
    lost = np.random.default_rng(1).random(flat.num_rows) > keep
    tracks = np.where(lost, -1, flat.column("particle_id").to_numpy().astype(np.int64))
    hits = np.tile(np.arange(HITS), EVENTS)
    sent = pa.table({"event_id": flat["event_id"], "hit_id": hits, "track_id": tracks})
    receipt = ok(client.post(SUBMIT, content=parquet(sent)))
    return ok(client.get(f"/v1/submissions/{receipt['submission_id']}"))


def test_a_submission_has_its_scores_in_bins(server: ServerProcess, tmp_path: Path) -> None:
    with signed_in(server, "alice") as alice:
        whole, half = submit(alice, 1), submit(alice, 0.45)
        listed = alice.get("/v1/me/submissions").json()
    assert [sent["curves"] for sent in listed] == [[], []]
    curves, others = ({curve["name"]: curve for curve in sent["curves"]} for sent in (whole, half))
    assert {"efficiency_pt", "efficiency_eta", "fake_rate_length"} <= curves.keys()
    efficiency, other = curves["efficiency_eta"], others["efficiency_eta"]
    assert min(efficiency["values"]) > 0.99
    assert max(other["values"]) < 0.8
    assert efficiency["edges"] == other["edges"]
    assert len(efficiency["edges"]) == len(efficiency["values"]) + 1 == len(efficiency["errors"]) + 1
    # A bin of so many entries has an error of at least that of the Beta distribution at its end.
    assert all(error < (MIN_ENTRIES + 2) ** -0.5 for error in other["errors"])

    page = httpx.get(
        f"{server.base_url}/leaderboard/submissions/{whole['submission_id']}",
        params={"with": half["submission_id"]},
        trust_env=False,
    )
    assert page.status_code == 200
    assert page.text.count('<svg class="plot"') == len(curves)
    assert '<g class="other">' in page.text
    done = server.run("submissions", half["submission_id"])
    assert done.returncode == 0, done.stderr
    assert "pT (GeV)" in done.stdout


def test_comparing_with_an_unknown_submission_is_reported(server: ServerProcess) -> None:
    with signed_in(server, "bob") as bob:
        sent = submit(bob, 0.9)
    for other in ("0" * 32, "<script>", "../" * 40):
        page = httpx.get(
            f"{server.base_url}/leaderboard/submissions/{sent['submission_id']}",
            params={"with": other},
            trust_env=False,
        )
        assert page.status_code == 200
        assert "There is no submission" in page.text
        assert "<script>" not in page.text.replace("<script type", "")
