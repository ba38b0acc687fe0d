"""What a user of the installed package writes; mypy and pyright check it, and it is never run."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import assert_type

import pyarrow as pa

from collidium import plugins, settings
from collidium.client import (
    AsyncClient,
    Client,
    Page,
    Place,
    Receipt,
    SimulationRequest,
    TaskCard,
    write_predictions,
)
from collidium.contracts.storage import Storage
from collidium.contracts.task import EventRange, Task
from collidium.errors import CollidiumError, InvalidInput
from collidium.hookspecs import hookimpl
from collidium.settings import Settings
from collidium.testing.conformance import check_storage, check_task
from collidium.testing.server import ServerProcess
from collidium_tasks.tracking import TrackingTask


def submit(path: Path) -> Decimal:
    with Client("http://127.0.0.1:8000", token="secret") as client:
        assert_type(client.task("tracking"), TaskCard)
        receipt = client.submit("tracking", path, "anna/helix")
        assert_type(receipt, Receipt)
        assert_type(receipt.scores["fake_rate"], float)
        assert_type(client.leaderboard("tracking", limit=3), Page[Place])
    return receipt.credits_earned


async def submit_asynchronously(path: Path) -> list[int]:
    async with AsyncClient() as client:
        assert_type(await client.submit("tracking", path), Receipt)
        return [place.rank for place in await client.leaderboard("tracking")]


def simulate(states: list[str]) -> str | None:
    def report(request: SimulationRequest) -> None:
        states.append(request.state)

    with Client() as client:
        assert_type(client.estimate("ttbar", 10, 0).credits, Decimal)
        ordered = client.simulate(preset="ttbar-quick", private=True)
        assert_type(ordered, SimulationRequest)
        assert_type(client.requests(state="running"), Page[SimulationRequest])
        return client.wait(ordered.request_id, timeout=60, on_change=report).output_hub_repo


async def simulate_asynchronously() -> bool:
    async with AsyncClient() as client:
        ordered = await client.simulate("ttbar", 10, 0, seed=7)
        return (await client.wait(ordered.request_id)).has_ended


def problems(error: CollidiumError) -> list[str]:
    if isinstance(error, InvalidInput):
        return [str(problem["detail"]) for problem in error.errors]
    return [error.detail]


@hookimpl
def collidium_tasks() -> list[Task]:
    return [TrackingTask()]


@hookimpl
def collidium_storages(settings: Settings) -> list[Storage]:
    return []


async def check(storage: Storage, directory: Path, hits: pa.Table) -> dict[str, float]:
    await check_storage(storage, directory)
    write_predictions(hits, directory / "predictions.parquet")
    return check_task(TrackingTask(), {"tracker_hits": hits})


def run(directory: Path) -> str:
    assert_type(EventRange.parse("3:5").start, int)
    assert_type(plugins.load().tasks().get("tracking"), Task)
    assert_type(settings.load(port=0).signup_grant, Decimal)
    with ServerProcess(directory, env={"PLATFORM_WORKERS": "2"}) as server:
        return server.add_user("anna")
