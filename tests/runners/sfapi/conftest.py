"""A Superfacility API of the test's own, and runners that use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.runners.sfapi.superfacility import Superfacility

from collidium import settings
from collidium.contracts.runner import Job, Runner
from collidium.order import Order
from collidium.settings import Settings
from collidium_runners.batch.states import Handle
from collidium_runners.sfapi import collidium_runners

MakeRunner = Callable[..., Runner]

#: Writes its arguments into a table of its own; the runner does not look into tables.
PIPELINE = (
    'sh -c \'printf "%s " "$@" >"$0/particles.parquet"\' {output} {first_event} {events} {seed} {channel}'
)


def job(request_id: str = "r1", channel: str = "ttbar", events: int = 1) -> Job:
    return Job(request_id, Order(channel, events, 0), node_seconds=60)


def configured(api: Superfacility, **overrides: Any) -> Settings:
    values: dict[str, Any] = {
        "run_mode": "real",
        "runner": "sfapi",
        "sfapi_url": api.url,
        "sfapi_token_url": api.token_url,
        "sfapi_client_id": api.client_id,
        "sfapi_key_file": api.key_file,
        "sfapi_account": api.account,
        "sfapi_directory": str(api.scratch),
        "sfapi_calls_per_second": 1000,
        "pipeline_command": PIPELINE,
    }
    return settings.load(**values | overrides)


def handle(job_id: int, request_id: str = "r1", parts: int = 1) -> str:
    return str(Handle(job_id, parts, request_id))


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Superfacility]:
    with Superfacility(tmp_path / "nersc") as server:
        yield server


@pytest_asyncio.fixture
async def make_runner(api: Superfacility) -> AsyncIterator[MakeRunner]:
    """Makes runners with settings of the test's choice; all are closed after the test."""
    made: list[Runner] = []

    def make(**overrides: Any) -> Runner:
        (runner,) = collidium_runners(configured(api, **overrides))
        made.append(runner)
        return runner

    yield make
    for runner in made:
        await runner.close()


@pytest.fixture
def runner(make_runner: MakeRunner) -> Runner:
    return make_runner()
