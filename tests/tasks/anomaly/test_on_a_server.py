"""From channels to a leaderboard: mixed, published without truth, looked at by a cheat, scored."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import nan
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets.events import tables_of

from collidium import datasets
from collidium.datasets.writing import write_dataset
from collidium.testing.server import ServerProcess, run_command

from .events import TASK

#: Events of each channel, and hits of each event.
CHANNELS = {"ttbar": (6, 40), "zmumu": (6, 30), "zprime": (4, 60)}
FIRST, STOP = 90_000, 90_016
SUBMIT = "/v1/benchmark/anomaly/submit"


@dataclass(frozen=True, slots=True)
class Site:
    """A server that asks for the anomalies of a mix, which is published on its own hub."""

    server: ServerProcess
    operator: str
    truth: Path

    def done(self, *arguments: str) -> str:
        url = self.server.base_url
        variables = {"PLATFORM_BACKEND": url, "PLATFORM_HUB_URL": f"{url}/hub", "HF_TOKEN": self.operator}
        done = run_command(arguments, self.server.environment | variables, self.server.directory)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def channels(self) -> dict[int, str]:
        """What only the operator knows."""
        rows = datasets.load(self.truth, "anomaly_pu0", "channels").to_pylist()
        return {row["event_id"]: row["channel"][0] for row in rows}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("channels")
    for channel, (events, hits) in CHANNELS.items():
        made = tables_of(range(events), hits=hits, seed=hits)
        write_dataset(directory / channel, f"{channel}_pu0", [made], events_per_shard=5)
    sources = [str(directory / channel) for channel in CHANNELS]
    mixed, truth = (str(directory / name) for name in ("mix", "truth"))
    with ServerProcess(tmp_path_factory.mktemp("site")) as server:
        site = Site(server, server.add_user("olga"), Path(truth))
        mixing = ("--config", "anomaly_pu0", "--output", mixed, "--first-event", str(FIRST))
        site.done("datasets", "mix", *sources, *mixing)
        events = f"{FIRST}:{STOP}"
        site.done(
            *("datasets", "publish", mixed, "--repo", "blind"),
            *("--withhold-truth", events, "--truth-output", truth),
        )
        site.done("truth", "import", "anomaly", "--from", truth, "--events", events)
        yield site


_serial = count()


@pytest.fixture
def caller(site: Site) -> Iterator[httpx.Client]:
    """A client that calls as an account of its own."""
    headers = {"Authorization": f"Bearer {site.server.add_user(f'sam{next(_serial)}')}"}
    with httpx.Client(base_url=site.server.base_url, headers=headers, timeout=60, trust_env=False) as client:
        yield client


def published(site: Site) -> dict[str, pa.Table]:
    return datasets.load("olga/blind", "anomaly_pu0", endpoint=f"{site.server.base_url}/hub")


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def answer(scores: dict[int, float]) -> pa.Table:
    return pa.table({"event_id": list(scores), "anomaly_score": list(scores.values())})


def submit(client: httpx.Client, table: pa.Table) -> dict[str, float]:
    done = client.post(SUBMIT, content=parquet(table))
    assert done.status_code == 200, done.text
    scores: dict[str, float] = done.json()["scores"]
    return scores


# -- what can be had ------------------------------------------------------------------------------------


def test_published_tables_hold_no_channel(site: Site) -> None:
    tables = published(site)
    assert tables["channels"]["channel"].null_count == STOP - FIRST
    assert tables["particles"]["particle_id"].null_count == STOP - FIRST
    assert {table.num_rows for table in tables.values()} == {STOP - FIRST}
    listed = site.done("datasets", "list", "olga/blind") + site.done("datasets", "tables", "olga/blind")
    assert not [channel for channel in CHANNELS if channel in listed]


def test_a_baseline_of_what_is_published_scores_its_floor(site: Site, caller: httpx.Client) -> None:
    tables = published(site)
    made = TASK.baselines()["energy"]({name: tables[name] for name in TASK.card.inputs})
    card = caller.get("/v1/benchmark/anomaly").json()
    floors = {metric["name"]: metric["floor"] for metric in card["metrics"]}
    scores = submit(caller, made)
    assert scores == {name: floors[name] for name in scores}
    assert set(scores) == {"auroc", "signal_efficiency_fpr1", "auroc_zprime"}


def test_scores_are_those_of_the_channels(site: Site, caller: httpx.Client) -> None:
    right = answer({event: float(channel == "zprime") for event, channel in site.channels.items()})
    assert submit(caller, right) == {"auroc": 1.0, "signal_efficiency_fpr1": 1.0, "auroc_zprime": 1.0}


# -- what does not pay ----------------------------------------------------------------------------------


def test_leaving_out_half_a_class_costs_half(site: Site, caller: httpx.Client) -> None:
    """Even who knows the truth gains nothing by an answer to some events alone."""
    signals = [event for event, channel in site.channels.items() if channel == "zprime"]
    others = [event for event, channel in site.channels.items() if channel != "zprime"]
    kept = answer(dict.fromkeys(signals[:2], 1.0) | dict.fromkeys(others, 0.0))
    assert submit(caller, kept)["auroc"] == 0.5
    kept = answer(dict.fromkeys(signals, 1.0) | dict.fromkeys(others[:6], 0.0))
    assert submit(caller, kept) == {"auroc": 0.5, "signal_efficiency_fpr1": 0.0, "auroc_zprime": 0.5}


def test_all_problems_at_once_and_no_truth_in_them(caller: httpx.Client) -> None:
    events = [FIRST, FIRST + 1, FIRST + 1, FIRST + 2, STOP + 7]
    table = pa.table({"event_id": events, "anomaly_score": [0.1, 0.2, 0.3, nan, 0.5]})
    done = caller.post(SUBMIT, content=parquet(table))
    problems = {(problem["column"], problem["count"]) for problem in done.json()["errors"]}
    assert done.status_code == 422
    assert problems == {("event_id", 1), ("anomaly_score", 1)}
    assert len(done.json()["errors"]) == 3
    assert not [word for word in (*CHANNELS, "signal") if word in done.text]
