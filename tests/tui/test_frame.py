"""What is there whatever screen is shown: login, status, freeze."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from time import monotonic

import pytest
from tests.core.client.servers import answering, response, serving
from tests.tui import seeding
from tests.tui.consoles import (
    LARGE,
    OVERVIEW,
    SMALL,
    console_of,
    console_on,
    holds,
    matches,
    show,
    shows,
    signed_in,
    text,
    types,
)

import collidium_tui
from collidium.client import AsyncClient, Client, Page
from collidium.client import AuditEntry as Entry
from collidium.operations.models import AuditEntry
from collidium.testing.server import ServerProcess
from collidium_tui import ConsoleScreen, Field, Form
from collidium_tui.app import Console
from collidium_tui.frame import Tabs
from collidium_tui.screens.analytics import AuditScreen
from collidium_tui.session import Session
from collidium_tui.widgets.text import Times

AT = datetime(2026, 3, 1, 12, 12, tzinfo=UTC)


async def test_a_wrong_token_is_shown_and_asked_for_again(backend: ServerProcess) -> None:
    async with console_on(backend.base_url, None) as pilot:
        await shows(pilot, "Sign in as operator")
        await types(pilot, "token", "wrong")
        await pilot.press("enter")
        await shows(pilot, "The server rejects this secret.", "Sign in as operator", "admin-token")
        await pilot.press(*backend.admin_token, "enter")  # in place of the wrong one
        await shows(pilot, "connected", "open")
        assert "last error" not in text(pilot)


async def test_the_freeze_works_while_something_is_typed(backend: ServerProcess) -> None:
    async with signed_in(backend) as pilot:
        form = Form("Anything", [Field("word", "Word")], "Send")
        pilot.app.push_screen(form)
        await shows(pilot, "Anything")
        await pilot.press("f", "ctrl+f")
        await shows(pilot, "Freeze the platform")
        await pilot.press("ctrl+f", "n")
        await holds(pilot, lambda: pilot.app.screen is form)
        assert form.values == {"word": "f"}


async def test_a_question_that_is_declined_changes_nothing(backend: ServerProcess, operator: Client) -> None:
    async with signed_in(backend) as pilot:
        for key in ("n", "escape"):
            await pilot.press("ctrl+f")
            await shows(pilot, "Freeze the platform")
            await pilot.press(key)
            await holds(pilot, lambda: "Freeze the platform" not in text(pilot))
    assert not operator.ready().submissions_frozen


async def test_help_shows_the_keys_of_the_screen_and_of_all(backend: ServerProcess) -> None:
    async with signed_in(backend, "Audit", size=LARGE) as pilot:
        await pilot.press("question_mark")
        await shows(
            pilot, "Help: Audit", "newest first", "Export CSV", "Freeze or unfreeze", "Palette", "Overview"
        )
        await pilot.press("escape")
        await holds(pilot, lambda: "Help: Audit" not in text(pilot))


async def test_the_palette_has_every_action(backend: ServerProcess) -> None:
    async with signed_in(backend, "Audit", size=LARGE) as pilot:
        console = console_of(pilot)
        titles = {command.title for command in console.get_system_commands(console.screen)}
        assert set(console.labels) | {"Freeze or unfreeze", "Export CSV", "Refresh", "Quit"} <= titles
        await pilot.press("ctrl+p")
        await shows(pilot, "Search for commands")
        await pilot.press(*"unfreeze")
        await shows(pilot, "Key ^f")
        await pilot.press("down", "enter")
        await shows(pilot, "Freeze the platform")


async def test_screens_are_reached_by_key_and_by_mouse(backend: ServerProcess) -> None:
    async with signed_in(backend, "Overview") as pilot:
        await pilot.press("7")
        await holds(pilot, lambda: getattr(pilot.app.screen, "label", "") == "Audit")
        await pilot.click(Tabs, offset=(2, 0))
        await holds(pilot, lambda: getattr(pilot.app.screen, "label", "") == "Overview")


async def test_times_are_shown_here_or_in_utc_on_demand(backend: ServerProcess) -> None:
    times = Times(lambda: AT, zone=timezone(timedelta(hours=5, minutes=30), "IST"))
    console = Console(Session(backend.base_url, backend.admin_token), times=times)
    async with console.run_test() as pilot:
        await shows(pilot, "connected")
        await show(pilot, "Audit")
        await shows(pilot, "times in IST")
        await pilot.press("u")
        await shows(pilot, "times in UTC")


async def test_light_and_dark(backend: ServerProcess) -> None:
    async with signed_in(backend, "Overview") as pilot:
        for dark in (False, True):
            await pilot.press("t")
            assert console_of(pilot).current_theme.dark is dark
            await shows(pilot, "queued")


async def test_a_key_that_is_held_down_asks_once_a_second(
    backend: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with signed_in(backend, "Audit") as pilot:
        asked, fetch = [], AuditScreen.fetch

        async def counted(self: AuditScreen, client: AsyncClient) -> Page[Entry]:
            asked.append(monotonic())
            return await fetch(self, client)

        monkeypatch.setattr(AuditScreen, "fetch", counted)
        for _ in range(2):
            before = len(asked)
            await pilot.press(*["r"] * 10)
            await holds(pilot, lambda before=before: len(asked) > before)
        assert all(later - earlier >= 0.9 for earlier, later in pairwise(asked))


async def test_a_screen_that_is_left_asks_nothing_more(backend: ServerProcess) -> None:
    async with signed_in(backend, "Audit") as pilot:
        audit = pilot.app.screen
        assert isinstance(audit, ConsoleScreen)
        await show(pilot, "Overview")
        assert not audit.is_fetching
        then = audit.data_at
        audit.refresh_now()
        await pilot.pause()
        assert not audit.is_fetching
        assert audit.data_at == then


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80", "132"])
async def test_the_overview_looks_as_it_did(size: tuple[int, int]) -> None:
    answer = answering(response("200 OK", json.dumps(OVERVIEW).encode(), "application/json"))
    with serving(*[answer] * 20) as backend:
        async with console_on(backend, "any", size=size, now=lambda: AT) as pilot:
            await shows(pilot, "FROZEN since", "requests have not been followed for 4 min")
            await matches(pilot, f"overview-{size[0]}")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80", "132"])
async def test_the_audit_looks_as_it_did(backend: ServerProcess, size: tuple[int, int]) -> None:
    seeding.seed(backend, _audited())
    async with signed_in(backend, "Audit", size=size, now=lambda: AT) as pilot:
        await shows(pilot, "mallory")
        await matches(pilot, f"audit-{size[0]}")


async def _audited() -> None:
    """What was done is this, and nothing else."""
    await AuditEntry.all().delete()
    entries = [
        AuditEntry(id=1, actor="admin", action="freeze", target="platform", details={"note": "queue floods"}),
        AuditEntry(id=2, actor="admin", action="ban", target="mallory", details={"note": "[red]!!![/red]"}),
        AuditEntry(id=3, actor="admin", action="grant", target="ada", details={"delta": "-2.5"}),
    ]
    await AuditEntry.bulk_create(entries)
    for entry in entries:
        await AuditEntry.filter(id=entry.id).update(at=AT - timedelta(minutes=10 - entry.id))


def test_everything_exported_is_there_and_documented() -> None:
    """Names load when they are asked for, so a module that has moved is noticed here alone."""
    for name in collidium_tui.__all__:
        assert inspect.getdoc(getattr(collidium_tui, name)), name
