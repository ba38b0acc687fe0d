"""Metrics of servers and workers, and readiness."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.waiting import eventually, eventually_async, start_announced
from tortoise.exceptions import DBConnectionError

from collidium import operations, settings
from collidium.api import context
from collidium.api.app import create_monitor
from collidium.api.context import Probe
from collidium.challenges.tasklist import open_platform
from collidium.contracts.storage import StorageUnavailable
from collidium.testing.server import COLLIDIUM, ServerProcess

from .conftest import operating, signed_in
from .test_benchmark_api import submit

PLATFORM = {"PLATFORM_MOCK_SECONDS": "3600", "PLATFORM_METRICS_TOKEN": "scrape"}
ALERTS = Path(__file__).parents[3] / "deploy" / "prometheus" / "alerts.yaml"
SCRAPE = {"Authorization": "Bearer scrape"}


def scraped(url: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All samples by name and labels."""
    text = httpx.get(f"{url}/metrics", headers=SCRAPE, trust_env=False).text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str
) -> float | None:
    return samples.get((f"collidium_{name}", frozenset(labels.items())))


def test_metrics_show_what_was_done_and_what_waits(platform: ServerProcess, oracle: pa.Table) -> None:
    with signed_in(platform, "counted") as client:
        assert submit(client, oracle).is_success
        broken = oracle.drop_columns("track_id")
        assert submit(client, broken).status_code == 422
        order = {"channel": "ttbar", "events": 1, "pileup": 0}
        assert client.post("/v1/simulate", json=order).status_code == 202
    found = scraped(platform.base_url)
    assert value(found, "submissions_total", task="tracking") == 1
    assert value(found, "scored_rows_total", task="tracking") == oracle.num_rows
    assert value(found, "scoring_seconds_count", task="tracking") == 2
    assert value(found, "scoring_failures_total", task="tracking", cause="invalid") == 1
    assert value(found, "scoring_in_progress") == 0
    assert value(found, "storage_seconds_count", operation="put") == 1
    assert (value(found, "hub_call_seconds_count", call="identity") or 0) >= 1
    assert (value(found, "cache_lookups_total", cache="tokens", result="hit") or 0) >= 1
    waiting = [value(found, "simulation_requests", runner="mock", state=at) for at in ("queued", "running")]
    assert [number for number in waiting if number] == [1]
    assert value(found, "followers") == 1
    assert (value(found, "models_waiting"), value(found, "models_waiting_seconds")) == (0, 0)
    assert value(found, "model_runners") in (0, 1)
    assert value(found, "webhooks_pending") == 0
    assert value(found, "frozen") == 0
    for part in ("database", "storage", "scoring"):
        assert value(found, "ready", part=part) == 1
    # The scoring worker; processes look at themselves every few seconds.
    eventually(lambda: (value(scraped(platform.base_url), "memory_bytes", processes="started") or 0) > 1e6)
    assert (value(found, "disk_free_bytes") or 0) > 0
    if "postgres" in platform.environment["PLATFORM_DATABASE_URL"]:
        assert (value(found, "database_connections", state="limit") or 0) > 1
    with operating(platform) as operator:
        operator.post("/admin/freeze?frozen=true")
        assert value(scraped(platform.base_url), "frozen") == 1
        operator.post("/admin/freeze?frozen=false")


def test_a_worker_shows_metrics_and_health(
    platform: ServerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, setting in (platform.environment | {"PLATFORM_WORKER_PORT": "0"}).items():
        monkeypatch.setenv(name, setting)
    process, line = start_announced([*COLLIDIUM, "worker"], tmp_path)
    try:
        url = line.split()[-1].removesuffix("/metrics")
        assert httpx.get(f"{url}/readyz", trust_env=False).json()["status"] == "ready"
        assert httpx.get(f"{url}/metrics", trust_env=False).status_code == 401
        assert httpx.get(f"{url}/v1/me", trust_env=False).status_code == 404
        assert value(scraped(url), "ready", part="database") == 1
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


async def test_readiness_names_the_part_that_is_away(
    migrated_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StorageUnavailable("no disk")

    loaded = settings.load(data_dir=tmp_path, database_url=migrated_database_url)
    async with open_platform(loaded) as platform:
        for part, owner, call in (
            ("storage", platform.storage, "exists"),
            ("scoring", platform.executor, "check"),
            ("database", operations, "is_frozen"),
        ):
            app = create_monitor()
            context.set_platform(app, platform)
            with monkeypatch.context() as patch:
                patch.setattr(owner, call, fail if part != "database" else _away)
                answer = await app.test_client().get("/readyz")
            state = await answer.get_json()
            assert (answer.status_code, state["status"]) == (503, "not ready")
            assert {name: state[name] for name in ("database", "storage", "scoring")} == {
                name: "away" if name == part else "ok" for name in ("database", "storage", "scoring")
            }


async def _away() -> bool:
    raise DBConnectionError("no route")


async def test_a_hanging_probe_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is gone holds a thread for each question."""
    monkeypatch.setattr(context, "PATIENCE_SECONDS", 0.01)
    asked, there = 0, asyncio.Event()

    async def ask() -> None:
        nonlocal asked
        asked += 1
        await there.wait()

    probe = Probe("the disk", ask)
    assert not await probe.is_available()
    assert not await probe.is_available()
    there.set()
    await eventually_async(probe.is_available)
    assert asked == 1
    assert await probe.is_available(), "for a few seconds the answer is good"
    assert asked == 1


def test_alerts_use_metrics_that_exist(platform: ServerProcess) -> None:
    text = httpx.get(f"{platform.base_url}/metrics", headers=SCRAPE, trust_env=False).text
    families = set(re.findall(r"^# TYPE (collidium_\w+) ", text, re.MULTILINE))
    used = set(re.findall(r"collidium_\w+", ALERTS.read_text()))
    assert used
    assert {re.sub("_bucket$", "", name) for name in used} <= families
