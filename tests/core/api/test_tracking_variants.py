"""Tracking with few parameters and at speed, over HTTP: what is accepted, ranked and paid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from tests.distributions import install

from collidium.client import Client
from collidium.testing.server import ServerProcess, run_command

from .conftest import FIRST, import_truth, ok, pages_of, parquet, signed_in

EFFICIENCY = "trackml_weighted_efficiency"
ADDED = {
    "tracking_small": ("n_params", 1000),
    "tracking_latency": ("seconds", 0.25),
    "traded": ("n_params", 1000),
}
#: Tracking with few parameters, which the submitter counts, and is ranked all the same.
TRADED = """
from dataclasses import replace
from collidium.hookspecs import hookimpl
from collidium.scoring import engine
from collidium_tasks.tracking_small import TrackingSmallTask

engine.OWN_PACKAGES.add("traded_task")

class Traded(TrackingSmallTask):
    card = replace(TrackingSmallTask.card, name="traded", ranks_measured=False)

@hookimpl
def collidium_tasks():
    return [Traded()]
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of its own, on embedded defaults, with truth for both tasks."""
    site = tmp_path_factory.mktemp("site")
    install(site, "traded-task", {"traded_task": TRADED})
    with ServerProcess(tmp_path_factory.mktemp("server"), env={"PYTHONPATH": str(site)}) as server:
        for task in ADDED:
            import_truth(server, task)
        assert server.run("task", "add", "traded").returncode == 0
        yield server


def answer(oracle: pa.Table, task: str, value: float | None = None, part: float = 1.0) -> pa.Table:
    """Valid predictions, of which a part of the tracks is right; the others are left unassigned."""
    name, usual = ADDED[task]
    tracks = np.asarray(oracle["track_id"])
    kept = np.random.default_rng(0).random(int(tracks.max()) + 1)[tracks] < part
    return oracle.set_column(2, "track_id", pa.array(np.where(kept, tracks, -1))).append_column(
        name, pa.array([usual if value is None else value] * oracle.num_rows)
    )


def submit(client: httpx.Client, task: str, table: pa.Table) -> Any:
    return ok(client.post(f"/v1/benchmark/{task}/submit", content=parquet(table)))


def token_of(client: httpx.Client) -> str:
    return client.headers["Authorization"].removeprefix("Bearer ")


# -- what is accepted ----------------------------------------------------------------------------------


def test_cards_show_what_is_accepted(platform: ServerProcess, alice: httpx.Client) -> None:
    columns = {
        column["name"]: (column["bounds"], column["one_per"])
        for task in ADDED
        for column in alice.get(f"/v1/benchmark/{task}").json()["columns"]
    }
    assert columns["n_params"] == ([1, None], "file")
    assert columns["seconds"] == ([1e-9, 86_400], "event")
    assert columns["hit_id"] == ([None, None], None)
    shown = platform.run("tasks", "tracking_latency").stdout
    for words in ("float from 1e-09 to 86400, one per event", "events_per_second is undefined when", "30"):
        assert words in shown
    assert (
        "Pareto front of trackml_weighted_efficiency and n_params"
        in platform.run("tasks", "tracking_small").stdout
    )


# -- few parameters -------------------------------------------------------------------------------------


def test_the_leaderboard_marks_the_pareto_front(
    platform: ServerProcess, alice: httpx.Client, oracle: pa.Table
) -> None:
    sent = ((1.0, 20_000), (0.9, 20_000), (0.5, 50), (0.3, 50), (0.2, 2_000_000))
    for part, n_params in sent:
        receipt = submit(alice, "traded", answer(oracle, "traded", n_params, part))
        assert set(receipt["scores"]) == {EFFICIENCY, "n_params", "tier"}
    board = alice.get("/v1/leaderboard/traded?all=true").json()
    assert [(place["rank"], place["scores"]["n_params"], place["pareto"]) for place in board] == [
        *((1, 20_000, True), (2, 20_000, False), (3, 50, True), (4, 50, False), (5, 2_000_000, False))
    ]
    assert [place["scores"]["tier"] for place in board] == [2, 2, 1, 1, 4]
    front = pages_of(alice, "/v1/leaderboard/traded?all=true&pareto=true&limit=1")
    assert front == [[board[0]], [board[2]]]
    with Client(platform.base_url) as client:
        assert [place.rank for place in client.leaderboard("traded", pareto=True)] == [1, 3]
        assert {place.pareto for place in client.leaderboard("traded", every=True)} == {True, False}
    shown = platform.run("leaderboard", "traded", "--pareto")
    assert (shown.returncode, shown.stdout.count(" yes")) == (0, 2), shown.stdout
    refused = alice.get("/v1/leaderboard/tracking?all=true&pareto=true")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "pareto"


def test_a_new_place_may_take_others_off_the_front(
    platform: ServerProcess, alice: httpx.Client, oracle: pa.Table
) -> None:
    submit(alice, "traded", answer(oracle, "traded", 7, 0.6))
    small = alice.get("/v1/leaderboard/traded?all=true").headers["ETag"]
    submit(alice, "traded", answer(oracle, "traded", 6, 0.7))
    board = alice.get("/v1/leaderboard/traded?all=true", headers={"If-None-Match": small})
    marks = {place["scores"]["n_params"]: place["pareto"] for place in board.json()}
    assert (marks[7], marks[6]) == (False, True)


# -- speed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["tracking_latency", "tracking_small"])
def test_what_the_platform_did_not_measure_stands_apart(
    platform: ServerProcess, operator: httpx.Client, oracle: pa.Table, task: str
) -> None:
    """It is scored and shown, has no rank, and earns nothing, whatever an operator does."""
    with signed_in(platform, f"bolt-{task[-5:]}") as bolt:
        receipt = submit(bolt, task, answer(oracle, task, 1))
        assert (receipt["scores"][EFFICIENCY], receipt["credits_earned"]) == (1, 0)
        assert receipt["unranked"].startswith("self-reported")
        assert bolt.get(f"/v1/leaderboard/{task}?all=true").json() == []
        (apart,) = bolt.get(f"/v1/leaderboard/{task}/self-reported?limit=1").json()
        assert (apart["submission_id"], apart["unranked"]) == (receipt["submission_id"], receipt["unranked"])
        assert operator.post(f"/admin/submissions/{receipt['submission_id']}/verify").status_code == 409
        assert operator.get(f"/admin/submissions?unverified=true&task={task}").json() == []
        assert bolt.get("/v1/leaderboard/tracking/self-reported").json() == []
        shown = platform.run("leaderboard", task, "--self-reported")
        assert receipt["submission_id"] in shown.stdout, shown.stderr
        assert f"{EFFICIENCY} 1 (error unknown)" in " ".join(shown.stdout.split())
        variables = {"PLATFORM_BACKEND": platform.base_url, "HF_TOKEN": token_of(bolt)}
        for words in (("submissions", "--task", task), ("submissions", receipt["submission_id"])):
            shown = run_command(words, platform.environment | variables, platform.directory).stdout
            assert " ".join(shown.split()).count("(self-reported)") >= 1, shown
        assert bolt.post(f"/v1/submissions/{receipt['submission_id']}/withdraw").status_code == 200
        assert bolt.get(f"/v1/leaderboard/{task}/self-reported").json() == []


@pytest.mark.parametrize(
    ("how", "missing"),
    [("few tracks", {"events_per_second"}), ("an event left out", {"events_per_second", "wallclock_s"})],
)
def test_submissions_without_a_speed_are_unranked_and_unpaid(
    platform: ServerProcess, alice: httpx.Client, oracle: pa.Table, how: str, missing: set[str]
) -> None:
    part = 0.2 if how == "few tracks" else 1.0
    table = answer(oracle, "tracking_latency", 1e-6, part)
    if how == "an event left out":
        table = table.filter(pa.compute.equal(table["event_id"], FIRST))
    # A dry run does not report which side of the line a file is on: that would reveal truth, bit by bit.
    document = alice.post("/v1/benchmark/tracking_latency/check", content=parquet(table)).json()
    assert not any("events_per_second" in warning for warning in document["warnings"])
    receipt = submit(alice, "tracking_latency", table)
    assert {"events_per_second", "wallclock_s", EFFICIENCY} - set(receipt["scores"]) == missing
    assert receipt["credits_earned"] == 0
    assert any("has no place on the leaderboard" in warning for warning in receipt["warnings"])
    kept = alice.get(f"/v1/submissions/{receipt['submission_id']}").json()
    assert kept["scores"] == receipt["scores"]
    board = alice.get("/v1/leaderboard/tracking_latency?all=true").json()
    assert receipt["submission_id"] not in {place["submission_id"] for place in board}
    with Client(platform.base_url) as client:
        record = client.submission(receipt["submission_id"])
        assert set(record.scores) == set(kept["scores"])
