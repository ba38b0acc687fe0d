"""Rows that tests of the console find on their server, written by the platform's own models."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from threading import Thread
from typing import Any

from collidium import accounts, database
from collidium.order import Order
from collidium.simulations import totals
from collidium.simulations.models import SimulationRequest, order_columns
from collidium.testing.server import ServerProcess


def seed(server: ServerProcess, work: Coroutine[Any, Any, None]) -> None:
    """Do this on the server's database, while it runs."""

    async def connected() -> None:
        async with database.connected(f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"):
            await work

    # In a thread of its own: the test may be on a loop already.
    thread = Thread(target=lambda: asyncio.run(connected()))
    thread.start()
    thread.join()


async def requests(rows: Iterable[SimulationRequest]) -> None:
    """Write requests with their accounts, and the totals that they add up to."""
    rows = list(rows)
    for name in {row.hub_username for row in rows}:
        account = await accounts.recognise(name, signup_grant=Decimal(10))
        for row in rows:
            if row.hub_username == name:
                row.account_id = account.id
    await SimulationRequest.bulk_create(rows)
    await totals.rebuild()


async def fail(request_id: str) -> None:
    """Have a request's runner lose it."""
    await SimulationRequest.filter(request_id=request_id).update(
        state="failed", step="", due_at=None, lease=""
    )


def handle_of(request_id: str) -> str:
    """The job of a request of :func:`ended`."""
    return f"job-{request_id[:8]}"


def ended(
    number: int, at: datetime, *, channel: str = "ttbar", events: int = 100, **other: Any
) -> SimulationRequest:
    """A request that completed a minute after it was ordered at ``at``; ``number`` makes its id."""
    finished_at = at + timedelta(minutes=1)
    values: dict[str, Any] = {
        "request_id": f"{number:08x}{number:024x}",
        "hub_username": "alice",
        **order_columns(Order(channel, events, 0)),
        "pipeline_version": "pipeline-v0.1.0",
        "config_hash": f"{number:064x}",
        "state": "completed",
        "created_at": at,
        "started_at": at,
        "finished_at": finished_at,
        "created_day": f"{at:%Y-%m-%d}",
        "finished_month": f"{finished_at:%Y-%m}",
        "credits_charged": Decimal("3.5"),
        "estimated_node_hours": Decimal("3.5"),
        "node_hours": Decimal("3.2"),
        "runner": "mock",
        "handle": f"job-{number:08x}",
        "node_seconds": 60.0,
        "step": "",
    }
    return SimulationRequest(**(values | other))
