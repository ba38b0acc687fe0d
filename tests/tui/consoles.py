"""The console as tests drive it: the application itself, on a real server, its screen read as text."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import rich.console
from tests.waiting import until
from textual.pilot import Pilot
from textual.widgets import Input

from collidium import __version__
from collidium.client import AsyncClient
from collidium.testing.server import ServerProcess
from collidium_tui.app import Console, PluginScreens
from collidium_tui.screen import ConsoleScreen
from collidium_tui.session import Link, Session
from collidium_tui.widgets.text import Times

#: Seconds between two looks at a screen, which is drawn anew for each.
PAUSE: Final = 0.05
#: Terminals that every screen is shown in.
SMALL: Final = (80, 24)
LARGE: Final = (132, 43)


@asynccontextmanager
async def console_on(
    backend: str,
    admin_token: str | None,
    *,
    size: tuple[int, int] = SMALL,
    now: Callable[[], datetime] | None = None,
    plugin_screens: PluginScreens = lambda: ({}, ()),
) -> AsyncIterator[Pilot[None]]:
    """The console on a server; times are in UTC, and ``now`` is its clock if one is given.

    Fails when the console ended by itself.
    """
    times = Times(now or (lambda: datetime.now(UTC)), zone=UTC, utc=True)
    console = Console(Session(backend, admin_token), times=times, plugin_screens=plugin_screens)
    async with console.run_test(size=size, notifications=True) as pilot:
        yield pilot
    assert not console.exit_message


@asynccontextmanager
async def signed_in(
    server: ServerProcess,
    screen: str | None = None,
    *,
    size: tuple[int, int] = SMALL,
    now: Callable[[], datetime] | None = None,
    plugin_screens: PluginScreens = lambda: ({}, ()),
) -> AsyncIterator[Pilot[None]]:
    """The console once the server has answered it, with a screen whose first data are there."""
    async with console_on(
        server.base_url, server.admin_token, size=size, now=now, plugin_screens=plugin_screens
    ) as pilot:
        await holds(pilot, lambda: console_of(pilot).session.status.link is Link.UP)
        if screen is not None:
            await show(pilot, screen)
        yield pilot


def console_of(pilot: Pilot[None]) -> Console:
    """The application."""
    assert isinstance(pilot.app, Console)
    return pilot.app


async def show(pilot: Pilot[None], label: str) -> None:
    """Go to a screen and wait for its first data."""
    console_of(pilot).action_show(label)
    await holds(pilot, lambda: getattr(pilot.app.screen, "label", "") == label)
    await holds(pilot, lambda: getattr(pilot.app.screen, "data", None) is not None)
    await pilot.pause()


async def answers(pilot: Pilot[None], data: object) -> None:
    """Have the screen that is shown be given these data from now on, which no server of today sends."""
    screen = pilot.app.screen
    assert isinstance(screen, ConsoleScreen)

    async def fetch(client: AsyncClient) -> object:
        return data

    screen.fetch = fetch
    screen.refresh_now()
    await holds(pilot, lambda: screen.data is data)
    await pilot.pause()


async def shows(pilot: Pilot[None], *words: str) -> None:
    """Wait until all of these stand on the screen."""
    await holds(pilot, lambda: all(word in text(pilot) for word in words))


async def holds(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until something is so; fails with the screen as it is instead."""
    try:
        await until(condition, 20, PAUSE)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{text(pilot)}") from None


async def types(pilot: Pilot[None], field: str, value: str) -> None:
    """Put a value into a form's field."""
    pilot.app.screen.query_one(f"#field-{field}", Input).value = value
    await pilot.pause()


def text(pilot: Pilot[None]) -> str:
    """The screen's lines as a user reads them, with what lies on top, without spaces at their ends."""
    app = pilot.app
    width, height = app.size
    console = rich.console.Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True, record=True, legacy_windows=False
    )
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    console.print(update)
    return "\n".join(line.rstrip() for line in console.export_text(styles=False).splitlines())


#: The overview of a server during an incident.
OVERVIEW: dict[str, Any] = {
    "version": __version__,
    "at": "2026-03-01T12:12:00Z",
    "run_mode": "real",
    "runner": "slurm",
    "submissions_frozen": True,
    "frozen_at": "2026-03-01T12:00:00Z",
    "frozen_by": "admin",
    "frozen_note": "a script orders without end; [red]no one[/red] knows whose",
    "queued": 1204,
    "running": 36,
    "oldest_queued_at": "2026-02-28T12:00:00Z",
    "month": "2026-03",
    "node_hours_today": 312.5,
    "requests_today": 1804,
    "node_hours_month": 9412.25,
    "requests_month": 24310,
    "monthly_node_hours": 10000.0,
    "failed": 260,
    "finished": 1300,
    "failure_rate": 20.0,
    "followers": [{"process": "alpha:4711", "looked_at": "2026-03-01T12:08:00Z"}],
    "webhooks_pending": 3,
    "models_waiting": 2,
    "oldest_model_at": "2026-03-01T10:02:00Z",
    "models_not_run": "onnxruntime is not installed (pip install 'collidium[onnx]')",
    "plugins_failed": ["plugin 'shifts' of shifts: ImportError: no module named rota"],
    "tasks_silent": [
        {"name": "jets", "reason": "no truth yet (collidium truth import jets --from ...)"},
        {"name": "anomaly", "reason": "no truth yet (collidium truth import anomaly --from ...)"},
    ],
}

#: What differs from run to run: the server's port, how fast it answered, ids and versions that it made.
_OF_THE_RUN: Final = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:8000"),
    (re.compile(r"connected \d+ ms"), "connected 5 ms"),
    (re.compile(r"collidium \d[\w.]*"), "collidium 0.4.0"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "0123456789abcdef" * 2),
    (
        re.compile(r"\b(?:[0-9a-f]{9,11}|[0-9a-f]{13,31})$", re.MULTILINE),
        "0123456789abcdef...",
    ),  # cut off by the screen's edge
    (re.compile(r"\b[0-9a-f]{12}\b"), "0123456789ab"),
)


async def matches(pilot: Pilot[None], name: str) -> None:
    """Wait until the screen is as ``snapshots/<name>.txt`` has it; writes the file if there is none.

    It waits because what has come may not be drawn yet: tabs, footer and scrollbars follow.
    """
    file = Path(__file__).with_name("snapshots") / f"{name}.txt"
    if not file.exists():
        await pilot.pause(1)  # nothing reports when all is drawn; a person looks at it next
        file.parent.mkdir(exist_ok=True)
        file.write_text(_same_in_all_runs(pilot))
        raise AssertionError(f"{file.name} was not there; it is now: look at it")
    expected = file.read_text()
    try:
        await until(lambda: _same_in_all_runs(pilot) == expected, 20, PAUSE)
    except AssertionError:
        assert _same_in_all_runs(pilot) == expected, f"{name}: remove the snapshot to have a new one"


def _same_in_all_runs(pilot: Pilot[None]) -> str:
    shown = text(pilot) + "\n"
    for found, put in _OF_THE_RUN:
        shown = found.sub(put, shown)
    return shown
