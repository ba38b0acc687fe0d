"""The task on a real server: measured by the command, submitted, refused where it is not what was read."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets import events
from tests.core.datasets.events import CONFIG, tables_of

from collidium.contracts.digest import event_digests, together
from collidium.testing.server import ServerProcess, run_command

EVENTS = range(12)
TABLES = tables_of(EVENTS, hits=60)
VALID = {
    "event_id": 0,
    "events": len(EVENTS),
    "digest": together(event_digests(TABLES["tracker_hits"])),
    "seconds_local": 0.25,
    "seconds_streaming": 1.5,
}
KINDS = {name: pa.int64() for name in ("event_id", "events", "digest")} | {
    name: pa.float64() for name in ("seconds_local", "seconds_streaming")
}


#: Reads two events and says it was all.
HASTY = """
from collidium.scoring.bench import loaders

def load(reading):
    return loaders.load(reading).slice(0, 2)
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A server that asks for the slice of a dataset on its own hub, and somebody who reads it."""

    server: ServerProcess
    token: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        url = self.server.base_url
        variables = {"PLATFORM_BACKEND": url, "PLATFORM_HUB_URL": f"{url}/hub", "HF_TOKEN": self.token}
        return run_command(arguments, self.server.environment | variables, self.server.directory)

    def done(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def call(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.server.base_url, headers=headers, timeout=60, trust_env=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    source = events.write(tmp_path_factory.mktemp("events"), TABLES, events_per_shard=5)
    with ServerProcess(tmp_path_factory.mktemp("site")) as server:
        imported = server.run(
            *("truth", "import", "data_loading", "--from", str(source)),
            *("--config", CONFIG, "--events", f"0:{len(EVENTS)}"),
        )
        assert imported.returncode == 0, imported.stderr
        site = Site(server, server.add_user("rita"))
        site.done("datasets", "publish", str(source), "--repo", "slice")
        yield site


def file(*rows: dict[str, Any], **kinds: pa.DataType) -> bytes:
    columns = {
        name: pa.array([row[name] for row in rows], (KINDS | kinds)[name])
        for name in VALID
        if all(name in row for row in rows)
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def with_values(**values: Any) -> bytes:
    return file(VALID | values)


#: What is sent -> the columns of which problems are reported, all at once.
BAD: dict[str, tuple[Callable[[], bytes], set[str]]] = {
    "a wrong digest": (lambda: with_values(digest=VALID["digest"] ^ 1), {"digest"}),
    "a wrong number of events": (lambda: with_values(events=11), {"events"}),
    "another slice": (lambda: with_values(events=11, digest=5), {"events", "digest"}),
    "a row of another event": (lambda: with_values(event_id=3), {"event_id"}),
    "a row of no event": (lambda: with_values(event_id=12), {"event_id"}),
    "no events": (lambda: with_values(events=0), {"events"}),
    "a negative digest": (lambda: with_values(digest=-1), {"digest"}),
    "no time at all": (
        lambda: with_values(seconds_local=0.0, seconds_streaming=0.0),
        {"seconds_local", "seconds_streaming"},
    ),
    "negative times": (
        lambda: with_values(seconds_local=-1.0, seconds_streaming=-2.0),
        {"seconds_local", "seconds_streaming"},
    ),
    "times that are none": (
        lambda: with_values(seconds_local=nan, seconds_streaming=inf),
        {"seconds_local", "seconds_streaming"},
    ),
    "a time that is not there": (lambda: with_values(seconds_streaming=None), {"seconds_streaming"}),
    "everything out of bounds": (
        lambda: with_values(events=-1, digest=-1, seconds_local=0.0, seconds_streaming=1e300),
        {"events", "digest", "seconds_local", "seconds_streaming"},
    ),
    "digests of floats": (lambda: file(VALID | {"digest": 1.0}, digest=pa.float64()), {"digest"}),
    "texts": (
        lambda: file(VALID | {"digest": "a", "events": "b"}, digest=pa.string(), events=pa.string()),
        {"digest", "events"},
    ),
    "columns that are missing": (
        lambda: file({name: VALID[name] for name in ("event_id", "events", "seconds_local")}),
        {"digest", "seconds_streaming"},
    ),
    "the slice twice": (lambda: file(VALID, VALID), set()),
    "no row": (lambda: file(), set()),
}


def test_bad_rows_are_rejected_with_all_problems_and_not_kept(site: Site) -> None:
    wrong = {}
    with site.call() as client:
        for endpoint in ("check", "submit"):
            for name, (spoilt, columns) in BAD.items():
                answer = client.post(f"/v1/benchmark/data_loading/{endpoint}", content=spoilt())
                reported = {problem.get("column") for problem in answer.json().get("errors", [])} - {None}
                if answer.status_code != 422 or reported != columns:
                    wrong[name, endpoint] = (answer.status_code, answer.json())
        assert not wrong, wrong
        board = client.get("/v1/leaderboard/data_loading").json()
        assert [place for place in board if place["hub_username"] == "rita"] == []
    assert [*(site.server.data_dir / "storage").rglob("*.parquet")] == []


def test_a_measured_result_counts_once_an_operator_verifies_it(site: Site, tmp_path: Path) -> None:
    predictions = tmp_path / "times.parquet"
    result = json.loads(
        site.done(
            "bench", "data-loading", "rita/slice", "--repeats", "2", "--output", str(predictions), "--json"
        )
    )
    assert (result["config"], result["table"], result["events"]) == (CONFIG, "tracker_hits", "0:12")
    assert result["digest"] == VALID["digest"]
    assert len(result["local"]["seconds"]) == len(result["streaming"]["seconds"]) == 2
    receipt = json.loads(site.done("submit", "data_loading", str(predictions), "--json"))
    assert receipt["scores"] == pytest.approx(
        {f"events_per_second_{name}": result[name]["events_per_second"] for name in ("local", "streaming")}
    )
    assert receipt["uncertainties"] == {}
    assert receipt["credits_earned"] == 0
    verified = httpx.post(
        f"{site.server.base_url}/admin/submissions/{receipt['submission_id']}/verify",
        headers={"X-Admin-Token": site.server.admin_token},
        trust_env=False,
    )
    assert verified.json()["credits_earned"] == 60


def test_bounds_of_integers_have_all_digits(site: Site) -> None:
    assert "integer from 0 to 9223372036854775807 " in site.done("tasks", "data_loading")


def test_the_output_for_people(site: Site, tmp_path: Path) -> None:
    done = site.run(
        "bench", "data-loading", "rita/slice", "--repeats", "1", "--output", str(tmp_path / "t.parquet")
    )
    assert done.returncode == 0, done.stderr
    assert "events per second" in done.stdout
    assert f"collidium submit data_loading {tmp_path / 't.parquet'}" in done.stderr
    refused = site.run("bench", "data-loading", str(tmp_path))
    assert refused.returncode == 3
    assert "name a repository" in refused.stderr


def test_a_loader_that_reads_less_fails_and_writes_nothing(site: Site, tmp_path: Path) -> None:
    (site.server.directory / "hasty.py").write_text(HASTY)
    output = tmp_path / "t.parquet"
    done = site.run("bench", "data-loading", "rita/slice", "--loader", "hasty:load", "--output", str(output))
    assert done.returncode == 1
    assert "10 events are missing, for example 2" in done.stderr
    assert not output.exists()
