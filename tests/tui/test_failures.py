"""What goes wrong around the console: servers away, old or strange, sizes, pastes, screens that fail."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.core.client.servers import answering, dripping, response, serving
from tests.tui.conftest import ADMIN_TOKEN
from tests.tui.consoles import OVERVIEW, console_of, console_on, holds, show, shows, signed_in, text
from tests.waiting import until
from textual import events
from textual.app import ComposeResult
from textual.widgets import Input, Static

from collidium import __version__
from collidium.client import AsyncClient, Banned, Client
from collidium.errors import CollidiumError, Unavailable, Unreachable, UpstreamError
from collidium.testing.server import ServerProcess
from collidium_tui import ConsoleScreen
from collidium_tui.app import Console
from collidium_tui.logs import log_file
from collidium_tui.screens import SCREENS
from collidium_tui.session import Link, ServerStatus, Session, StatusPoller

NO_SERVER = "http://127.0.0.1:9"


async def test_data_are_marked_stale_while_the_backend_is_down(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, env={"ADMIN_TOKEN": ADMIN_TOKEN}) as server:
        async with signed_in(server, "Overview") as pilot:
            await shows(pilot, "queued")
            port = int(server.base_url.rpartition(":")[2])
            server.kill()
            await pilot.press("r")
            await shows(pilot, "BACKEND AWAY", "STALE: data", "cannot reach", "collidium serve", "queued")
            server.start(port=port)
            await holds(pilot, lambda: console_of(pilot).session.status.link is Link.UP)
            await holds(pilot, lambda: "STALE" not in text(pilot))
            await shows(pilot, "last error, at", "cannot reach")


async def test_a_backend_that_is_not_there_is_shown() -> None:
    async with console_on(NO_SERVER, ADMIN_TOKEN) as pilot:
        await shows(pilot, "BACKEND AWAY", "cannot reach http://127.0.0.1:9")
        await pilot.press("ctrl+f", "y")
        await shows(pilot, "No response", "Send again (y)")
        await pilot.press("n")
        await shows(pilot, "No response", "The action may have been done")


@pytest.mark.parametrize(
    "lost",
    [
        Unreachable("the answer was lost"),
        Unavailable("the answer was lost"),
        UpstreamError("the answer was lost"),
    ],
)
async def test_an_action_in_doubt_is_sent_again_under_its_key(
    backend: ServerProcess, operator: Client, lost: CollidiumError
) -> None:
    """The server does it, its answer is lost, and what is sent again is answered with the first answer."""
    name = f"kim-{type(lost).__name__.lower()}"
    keys: list[str] = []

    async def ban(client: AsyncClient, key: str) -> Banned:
        keys.append(key)
        banned = await client.admin_ban(name, idempotency_key=key)
        if len(keys) == 1:
            raise lost
        return banned

    async def perform() -> None:
        await console.perform(ban, f"{name} is banned")

    async with signed_in(backend, "Overview") as pilot:
        console = console_of(pilot)
        console.act(perform)
        await shows(pilot, "No response", "the answer was lost")
        await pilot.press("y")
        await shows(pilot, f"{name} is banned")
    assert len(set(keys)) == 1
    assert [line.target for line in operator.admin_audit()].count(name) == 1


async def test_no_address_ends_the_console_with_a_word() -> None:
    console = Console(Session("not an address", ADMIN_TOKEN))
    async with console.run_test() as pilot:
        await holds(pilot, lambda: bool(console.exit_message))
    assert "PLATFORM_BACKEND must be an address" in console.exit_message


async def test_a_secret_that_cannot_be_sent_is_asked_for_again() -> None:
    async with console_on(NO_SERVER, "two words") as pilot:
        await shows(pilot, "Sign in as operator", "the admin token is invalid")
        assert "two words" not in text(pilot)


def answered(status: str, body: object) -> bytes:
    kind = "application/json" if status.startswith("200") else "application/problem+json"
    return response(status, json.dumps(body).encode(), kind)


async def test_a_server_from_before_the_console_is_named() -> None:
    missing = answered("404 Not Found", {"title": "Not found", "detail": "there is no such page"})
    early = answered("200 OK", {"status": "ok", "version": "0.3.9"})
    with serving(answering(missing), answering(early)) as backend:
        async with console_on(backend, ADMIN_TOKEN, size=(132, 24)) as pilot:
            await shows(pilot, "BACKEND OF ANOTHER VERSION", "the server runs collidium 0.3.9", __version__)


async def test_a_server_of_another_series_is_named_and_shown() -> None:
    newer = answered("200 OK", OVERVIEW | {"version": "1.2.0", "queued": 2, "running": 1})
    with serving(answering(newer)) as backend:
        async with console_on(backend, ADMIN_TOKEN, size=(132, 24)) as pilot:
            await shows(pilot, "connected", "the server runs collidium 1.2.0", "3 unfinished")


async def test_a_page_of_a_proxy_is_no_backend() -> None:
    page = response("502 Bad Gateway", b"<html>no upstream</html>", "text/html")
    with serving(answering(page), answering(page)) as backend:
        async with console_on(backend, ADMIN_TOKEN, size=(132, 24)) as pilot:
            await shows(pilot, "BACKEND AWAY", "not an answer of", "Collidium server")


async def test_an_answer_without_an_end_is_none() -> None:
    with serving(dripping) as backend:
        session = Session(backend, ADMIN_TOKEN, timeout_seconds=0.3)
        await session.open()
        with pytest.raises(Unreachable, match=r"did not respond within 0\.3 s"):
            await session.poll()
        assert session.status.link is Link.AWAY
        await session.close()


async def test_an_internal_error_does_not_end_polling(backend: ServerProcess) -> None:
    session, seen = Session(backend.base_url, backend.admin_token), list[Exception]()
    await session.open()
    poller = StatusPoller(session, seen.append)

    def fail_once(standing: ServerStatus) -> None:
        session.on_change = lambda standing: None
        raise KeyError("an error of the screen")

    session.on_change = fail_once
    polling = asyncio.create_task(poller.run())
    await until(lambda: bool(seen))
    before = session.status
    poller.poll_now()
    await until(lambda: session.status is not before)
    assert [type(error) for error in seen] == [KeyError]
    assert session.status.link is Link.UP
    polling.cancel()
    await session.close()


async def test_a_terminal_of_no_size_and_back(backend: ServerProcess) -> None:
    async with signed_in(backend, "Overview") as pilot:
        for size in ((1, 1), (0, 0), (2, 40), (300, 2)):
            await pilot.resize_terminal(*size)
        await pilot.press("ctrl+f")
        await pilot.resize_terminal(1, 1)
        await pilot.resize_terminal(80, 24)
        await shows(pilot, "Freeze the platform", "Freeze (y)")


async def test_long_pasted_text_is_cut_in_a_field(backend: ServerProcess) -> None:
    async with console_on(backend.base_url, None) as pilot:
        await shows(pilot, "Sign in as operator")
        field = pilot.app.screen.query_one(Input)
        field.post_message(events.Paste("It was a dark and stormy night; " * 50_000))
        await pilot.pause()
        assert field.value == ""
        await pilot.press("x", "enter")
        await shows(pilot, "rejects this secret")


async def test_the_secret_is_shown_nowhere(backend: ServerProcess) -> None:
    async with console_on(backend.base_url, None, size=(132, 43)) as pilot:
        await shows(pilot, "Sign in as operator")
        await pilot.press(*backend.admin_token[:-1])
        assert backend.admin_token[:-1] not in text(pilot)
        await pilot.press(backend.admin_token[-1], "enter")
        await shows(pilot, "connected")
        console = console_of(pilot)
        seen = (text(pilot), console.title, repr(vars(console.session)), repr(console.session.status))
        assert not any(backend.admin_token in each for each in seen)


# -- screens that fail ---------------------------------------------------------------------------------


class Working(ConsoleScreen[str]):
    """What each of the others gets one thing of wrong."""

    def content(self) -> ComposeResult:
        yield Static(id="version")

    async def fetch(self, client: AsyncClient) -> str:
        return (await client.health()).version

    def show(self, data: str) -> None:
        self.query_one("#version", Static).update(f"version {data}")


class Unmakeable(Working):
    label = "Unmakeable"

    def __init__(self) -> None:
        raise KeyError("a secret of its author")


class Empty(Working):
    label = "Empty"

    def content(self) -> ComposeResult:
        yield Static("so far so good")
        raise KeyError("a secret of its author")


class Unasked(Working):
    label = "Unasked"

    async def fetch(self, client: AsyncClient) -> str:
        raise KeyError("a secret of its author")


class Unseen(Working):
    label = "Unseen"

    def show(self, data: str) -> None:
        raise KeyError("a secret of its author")


class Fatal(Working):
    label = "Fatal"

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        raise KeyError("a secret of its author")


def strange() -> tuple[dict[str, type[ConsoleScreen[Any]]], list[str]]:
    screens = {kind.label: kind for kind in (Unmakeable, Empty, Unasked, Unseen, Fatal)}
    return {**screens, "Audit": Working}, ["plugin 'shifts' of shifts: ImportError: [red]no[/]"]


@pytest.mark.parametrize("label", ["Unmakeable", "Empty", "Unasked", "Unseen"])
async def test_a_screen_that_fails_says_so_in_its_place(backend: ServerProcess, label: str) -> None:
    async with signed_in(backend, plugin_screens=strange, size=(132, 43)) as pilot:
        await holds(pilot, lambda: label in console_of(pilot).labels)
        console_of(pilot).action_show(label)
        await shows(pilot, "error in the console (KeyError)", "console.log")
        assert "secret of its author" not in text(pilot)
        await show(pilot, "Audit")
        await shows(pilot, "who", "what")


@pytest.mark.parametrize(
    "address", ["collidium_tui.screens.nowhere:Lost", "collidium_tui.screens.analytics:Lost"]
)
async def test_a_missing_screen_breaks_no_other(
    backend: ServerProcess, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setitem(SCREENS, "Usage", address)
    async with signed_in(backend) as pilot:
        console_of(pilot).action_show("Usage")
        await shows(pilot, "This screen cannot be shown", "error in the console")
        await show(pilot, "Audit")
        await shows(pilot, "who", "what")


async def test_what_is_wrong_with_plugins_is_shown(backend: ServerProcess) -> None:
    async with signed_in(backend, plugin_screens=strange, size=(132, 43)) as pilot:
        await shows(pilot, "[red]no[/]", "screen 'Audit' of a plugin")


@pytest.fixture
def logging_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    handler = logging.FileHandler(tmp_path / "log")
    logger = logging.getLogger("collidium_tui")
    logger.addHandler(handler)
    yield tmp_path / "log"
    logger.removeHandler(handler)
    handler.close()


async def test_a_fatal_error_ends_the_console_without_a_traceback(
    backend: ServerProcess, logging_to: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    console = Console(Session(backend.base_url, ADMIN_TOKEN), plugin_screens=strange)
    async with console.run_test() as pilot:
        await holds(pilot, lambda: "Fatal" in console.labels)
        console.action_show("Fatal")
        await holds(pilot, lambda: bool(console.exit_message))
    assert console.exit_message.startswith("The console ended: error in the console")
    assert str(log_file()) in console.exit_message
    assert "a secret of its author" in logging_to.read_text()
    assert "Traceback" not in "".join(capfd.readouterr())


async def test_a_notification_writes_nothing_else_to_the_terminal() -> None:
    hostile = "no \x1b]0;pwned\x07\x9b31m\u202eway\r"
    async with console_on(NO_SERVER, ADMIN_TOKEN) as pilot:
        for screen in (console_of(pilot), pilot.app.screen):
            screen.notify(f"[b]{hostile}", title=hostile)
        await pilot.pause()
        shown = [toast for toast in pilot.app._notifications if "pwned" in toast.message]
        assert len(shown) == 2
        for toast in shown:
            assert (toast.message + toast.title).isprintable()
            assert toast.message.startswith("[b]no")
            assert not toast.markup
