"""Makes the pictures of the operator's console: ``python docs/console_pictures.py``.

A real server, filled with accounts and requests that are always the same but for their days, which are the
last ones, and the console on it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from textual.pilot import Pilot

from collidium import accounts, database
from collidium.client import AsyncClient
from collidium.order import Order
from collidium.simulations import totals
from collidium.simulations.models import SimulationRequest, order_columns
from collidium.testing.server import ServerProcess
from collidium_tui.app import Console
from collidium_tui.session import Session
from collidium_tui.widgets.text import Times

PICTURES: Final = Path(__file__).with_name("pictures")
SIZE: Final = (112, 32)
PEOPLE: Final = ("anna", "bohr", "chien", "dirac", "emmy", "feynman", "georgi", "higgs")
CHANNELS: Final = ("ttbar", "higgs_portal", "jets", "zmumu")
#: How most of them ended; one account floods the queue.
STATES: Final = ("completed", "completed", "completed", "failed", "completed", "running", "queued")
FLOODING: Final = "mallory"
#: Rows of a month.
ROWS: Final = 240


def make(directory: Path) -> None:
    """Write all pictures of the console into ``directory``."""
    settings = {"ADMIN_TOKEN": "pictures", "PLATFORM_FOLLOW_REQUESTS": "false"}
    with tempfile.TemporaryDirectory() as home, ServerProcess(Path(home), env=settings) as server:
        asyncio.run(_fill(f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"))
        asyncio.run(_pictures(server, directory))


async def _fill(url: str) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    async with database.connected(url):
        ids = {
            name: (await accounts.recognise(name, signup_grant=Decimal(50))).id
            for name in (*PEOPLE, FLOODING)
        }
        rows = [_row(number, now, ids) for number in reversed(range(ROWS))]
        await SimulationRequest.bulk_create(rows)
        await totals.rebuild()


def _row(number: int, now: datetime, ids: dict[str, Any]) -> SimulationRequest:
    flood = number < 40
    name = FLOODING if flood else PEOPLE[number % 7 * (number % 3) % len(PEOPLE)]
    state = "queued" if flood else STATES[number % len(STATES)] if number < 80 else STATES[number % 5]
    created_at = now - (timedelta(seconds=9 * number) if flood else timedelta(hours=3 * (number - 39)))
    ended = state in ("completed", "failed")
    channel = "ttbar" if flood else CHANNELS[number % len(CHANNELS)]
    return SimulationRequest(
        request_id=hashlib.md5(b"%d" % number, usedforsecurity=False).hexdigest(),
        account_id=ids[name],
        hub_username=name,
        **order_columns(Order(channel, 1000, (0, 40, 200)[number % 3], number)),
        pipeline_version="1",
        config_hash=f"{number:064x}",
        state=state,
        step="" if ended else "follow" if state == "running" else "submit",
        created_at=created_at,
        started_at=created_at + timedelta(minutes=2) if state != "queued" else None,
        finished_at=created_at + timedelta(hours=1) if ended else None,
        created_day=f"{created_at:%Y-%m-%d}",
        finished_month=f"{created_at + timedelta(hours=1):%Y-%m}" if ended else None,
        handle=f"{4000 + number}" if state != "queued" else None,
        node_seconds=9000.0,
        reason="the node was lost" if state == "failed" else None,
        runner="slurm",
        credits_charged=Decimal("2.500"),
        estimated_node_hours=Decimal("2.5"),
        node_hours=Decimal(number % 11 + 1) / 4,
    )


async def _pictures(server: ServerProcess, directory: Path) -> None:
    console = Console(Session(server.base_url, server.admin_token), times=Times(utc=True))
    async with console.run_test(size=SIZE) as pilot, AsyncClient(server.base_url, "", "pictures") as client:
        await _until(pilot, lambda: console.session.status.overview is not None)
        for label in ("Analytics", "Requests"):
            await _shown(pilot, label)
            _write(console, directory, label.lower())
        await pilot.press("ctrl+f")
        await pilot.pause()
        _write(console, directory, "freeze")
        await pilot.press("n")
        await client.admin_freeze(True, note=f"{FLOODING} orders without end")
        for label in ("Incident", "Overview"):
            await _shown(pilot, label)
            await _until(pilot, lambda: bool(console.session.status.frozen))
            await pilot.pause()
            _write(console, directory, label.lower())


async def _shown(pilot: Pilot[None], label: str) -> None:
    app = pilot.app
    assert isinstance(app, Console)
    asked = app.times.now()
    app.action_show(label)
    await _until(pilot, lambda: getattr(app.screen, "label", "") == label)
    await _until(pilot, lambda: (getattr(app.screen, "data_at", None) or asked) > asked)
    await pilot.pause()


async def _until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await pilot.pause(0.05)


def _write(console: Console, directory: Path, name: str) -> None:
    svg = console.export_screenshot(title="collidium tui")
    svg = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", svg)
    svg = re.sub(r"connected(&#160;)\d+(&#160;)ms", r"connected\g<1>5\g<2>ms", svg)
    # The fonts of the reader's own machine: a picture fetches nothing.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (directory / f"console-{name}.svg").write_text(svg)


if __name__ == "__main__":
    make(PICTURES)
