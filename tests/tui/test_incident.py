"""The incident procedure as an operator goes through it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.tui import seeding
from tests.tui.consoles import LARGE, SMALL, matches, shows, signed_in, types

from collidium.client import Client
from collidium.operations.models import AuditEntry, GlobalConfig
from collidium.testing.server import ServerProcess

#: What a terminal must not take for markup or commands.
HOSTILE = "[red]x[/red] [/] \x1b[31m\x9b31m\u202e\a"


@pytest.fixture
def operator(operator: Client) -> Iterator[Client]:
    """The operators' client; the platform is open before and after."""
    operator.admin_freeze(False)
    yield operator
    operator.admin_freeze(False)


async def test_from_the_freeze_to_its_end(backend: ServerProcess, operator: Client) -> None:
    async with signed_in(backend, "Incident") as pilot:
        await pilot.press("enter")
        await shows(pilot, "Freeze the platform", "are rejected")
        await pilot.press("y")
        await shows(pilot, "*** FROZEN ***", "INCIDENT for", "[x] 1 Freeze", "by admin")
        assert operator.ready().submissions_frozen
        await shows(pilot, "What is wrong, since when")  # what is next is chosen, and shown
        await pilot.press("d")
        await shows(pilot, "Investigate: done")
        await types(pilot, "note", "the disk is full")
        await pilot.press("enter")
        await shows(pilot, "[x] 2 Investigate", "the disk is full", "Only if an account caused it")
        await pilot.press("down", "enter")
        await shows(pilot, "Fix the cause: done")
        await pilot.press("enter")
        await shows(pilot, "[x] 4 Fix the cause")
        await pilot.press("down", "enter")
        await shows(pilot, "Unfreeze the platform")
        await pilot.press("y")
        await shows(pilot, "[x] 5 Unfreeze", "open again")
        assert not operator.ready().submissions_frozen


async def test_the_causing_account_is_banned(backend: ServerProcess, operator: Client) -> None:
    operator.admin_freeze(True)
    async with signed_in(backend, "Incident") as pilot:
        await pilot.press("home", "down", "down", "enter")
        await shows(pilot, "Ban an account")
        await types(pilot, "name", "eve")
        await pilot.press("enter")
        await shows(pilot, "Ban eve", "has not signed in yet", "rejected (403)")
        await pilot.press("enter")
        await shows(pilot, "Reason: is needed")
        await types(pilot, "reason", HOSTILE)
        await pilot.press("enter")
        await shows(pilot, "[x] 3 Ban, if needed", "banned: eve")
    assert operator.admin_account("eve").banned
    entry = operator.admin_audit(limit=1)[0]
    assert (entry.action, entry.target) == ("ban", "eve")


async def test_who_looks_at_another_step_is_left_there(backend: ServerProcess, operator: Client) -> None:
    async with signed_in(backend, "Incident") as pilot:
        await pilot.press("end")
        await shows(pilot, "Enter asks for a time window")
        operator.admin_freeze(True)
        await shows(pilot, "[x] 1 Freeze", "Enter asks for a time window")


async def test_an_invalid_name_is_not_banned(backend: ServerProcess, operator: Client) -> None:
    async with signed_in(backend, "Incident") as pilot:
        for name in ("../x", HOSTILE, "a" * 96 + "b"):
            await pilot.press("home", "down", "down", "enter")
            await shows(pilot, "Ban an account")
            await types(pilot, "name", name)
            await pilot.press("enter")
            await shows(pilot, "Reason")
            await types(pilot, "reason", "x")
            await pilot.press("enter")
            await shows(pilot, "Not done")


# -- how it looks -------------------------------------------------------------------------------------

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def begin(server: ServerProcess) -> None:
    """An incident of one day: frozen, and two accounts were banned."""

    async def work() -> None:
        actions = (("freeze", "submissions"), ("ban", "eve"), ("ban", "mallory"))
        for number, (action, target) in enumerate(actions):
            at = NOON + timedelta(minutes=number)
            note = {"note": f"queue floods {HOSTILE}"}
            await AuditEntry.create(at=at, actor="admin", action=action, target=target, details=note)
        await GlobalConfig.all().update(submissions_frozen=True)

    seeding.seed(server, work())


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_how_an_incident_looks(backend: ServerProcess, operator: Client, size: tuple[int, int]) -> None:
    begin(backend)
    async with signed_in(backend, "Incident", size=size, now=lambda: NOON + timedelta(minutes=12)) as pilot:
        await pilot.press("home", "down", "d")
        await shows(pilot, "Investigate: done")
        await types(pilot, "note", "one account, 400 requests a minute")
        await pilot.press("enter")
        await shows(pilot, "[x] 2 Investigate", "banned: eve, mallory")
        await matches(pilot, f"incident-{size[0]}")
