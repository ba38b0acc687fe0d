"""Errors of a task's plugin: submitters lose nothing, and operators find the cause in the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.distributions import install
from tests.waiting import eventually

from collidium.testing.server import ServerProcess

from .conftest import EVENTS, FIRST, STOP, credits_of, files_below, parquet, signed_in

#: What goes wrong depends on the first track.
SOURCE = """
from dataclasses import replace
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking import TrackingTask

RAISES, LOOPS, SWELLS, SAYS_NAN, FORGETS = range(1_000_001, 1_000_006)

class Faulty(TrackingTask):
    card = replace(TrackingTask.card, name="faulty")

    def score(self, block):
        how = block.predictions["track_id"][0].as_py()
        if how == RAISES:
            raise KeyError("what the operator wants to see")
        while how == LOOPS:
            pass
        if how == SWELLS:
            bytearray(64 * 1024**3)
        return how, super().score(block)

    def merge(self, tallies):
        return max(how for how, _ in tallies), super().merge([tally for _, tally in tallies])

    def metrics(self, tally):
        how, counted = tally
        metrics = super().metrics(counted)
        if how == FORGETS:
            metrics.pop("fake_rate")
        return dict.fromkeys(metrics, float("nan")) if how == SAYS_NAN else metrics

    def resample(self, tallies, draws):
        return [self.metrics(self.merge([tallies[group] for group in draw])) for draw in draws]

    def warnings(self, tally):
        return []

    def counts(self, tally):
        return {}

    def curves(self, tally):
        return ()

    def baselines(self):
        return {}

@hookimpl
def collidium_tasks():
    return [Faulty()]
"""

FAULTS = {
    1_000_001: ("KeyError", "what the operator wants to see", "faulty_task.py"),
    1_000_002: ("took longer than its 3 seconds",),
    1_000_003: ("bytes of memory",),
    1_000_004: ("not finite", "trackml_weighted_efficiency"),
    1_000_005: ("must give", "fake_rate"),
}

SUBMIT = "/v1/benchmark/faulty/submit"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with the faulty task and its truth."""
    site = tmp_path / "site"
    install(site, "faulty-task", {"faulty_task": SOURCE})
    env = {"PYTHONPATH": str(site), "PLATFORM_SCORING_SECONDS": "3", "PLATFORM_SUBMISSIONS_PER_DAY": "1"}
    dataset = ("--from", str(EVENTS), "--config", "ttbar_pu0", "--events", f"{FIRST}:{STOP}")
    with ServerProcess(tmp_path / "server", env=env) as server:
        for arguments in (("truth", "import", "faulty", *dataset), ("task", "add", "faulty")):
            done = server.run(*arguments)
            assert done.returncode == 0, done.stderr
        yield server


def test_a_fault_of_the_task_costs_the_submitter_nothing(server: ServerProcess, oracle: pa.Table) -> None:
    with signed_in(server, "unlucky") as client:
        for fault, words in FAULTS.items():
            answer = client.post(SUBMIT, content=parquet(beginning_with(oracle, fault)))
            assert answer.status_code == 503, answer.text
            assert int(answer.headers["Retry-After"]) > 0
            assert "not because of your predictions" in answer.json()["detail"]
            assert not any(word in answer.text for word in ("Error", "faulty_task.py", "operator wants"))
            log = server.log()
            assert all(word in log for word in words), log
            assert client.get("/healthz").status_code == 200
        assert client.get("/v1/leaderboard/faulty").json() == []
        assert credits_of(client) == 10
        eventually(lambda: files_below(server.data_dir / "uploads") == [])
        assert files_below(server.data_dir / "storage" / "predictions") == []
        kept = client.post(SUBMIT, content=parquet(oracle))
        assert kept.status_code == 200, "the one submission of the day is still there"
        assert credits_of(client) > 10
        assert client.post(SUBMIT, content=parquet(beginning_with(oracle, 7))).status_code == 429


def beginning_with(oracle: pa.Table, track: int) -> pa.Table:
    tracks = np.asarray(oracle["track_id"]).copy()
    tracks[0] = track
    return oracle.set_column(2, "track_id", pa.array(tracks))
