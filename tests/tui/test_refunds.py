"""Refunds of what failed in a window of time: seen first, paid as table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests.tui import seeding
from tests.tui.consoles import LARGE, SMALL, matches, shows, signed_in, types
from textual.pilot import Pilot

from collidium.client import Client
from collidium.testing.server import ServerProcess

#: When the requests of these tests failed, an hour of its own for each test.
DAY = datetime(2026, 3, 1, tzinfo=UTC)
HOSTILE = "[red]x[/red] [/] \x1b[31m\x9b31m\u202e\a"


def fail(server: ServerProcess, hour: int, *names: str, **other: object) -> None:
    """A request of each account failed in that hour, and was given half of its credits back."""
    at = DAY + timedelta(hours=hour)
    rows = [
        seeding.ended(
            100 * hour + number + len(other) * 50,
            at + timedelta(minutes=number),
            **{
                "hub_username": name,
                "state": "failed",
                "credits_charged": Decimal(5),
                "credits_refunded": Decimal("2.5"),
                "reason": "the hub refused the token",
            }
            | other,
        )
        for number, name in enumerate(names)
    ]
    seeding.seed(server, seeding.requests(rows))


def clock_at(hour: int) -> datetime:
    return DAY + timedelta(hours=hour, minutes=50)


async def preview(pilot: Pilot[None]) -> None:
    """Go to the refunds of the last hour."""
    await pilot.press("end", "enter")
    await shows(pilot, "Refund what failed", "Failed from (UTC)")
    await pilot.press("enter")
    await shows(pilot, "credits of")


async def test_what_is_seen_is_given_back(backend: ServerProcess, operator: Client) -> None:
    fail(backend, 1, "ann", "ben", "ann")
    async with signed_in(backend, "Incident", now=lambda: clock_at(1)) as pilot:
        await preview(pilot)
        await shows(pilot, "7.5 credits of 3 requests", "the hub re")
        assert [operator.admin_account(name).credits for name in ("ann", "ben")] == [10, 10]
        await pilot.press("a")
        await shows(pilot, "7.5 credits of 3 requests of 2 accounts", "since you saw it")
        await pilot.press("enter")
        await shows(pilot, "Note: is needed")
        await types(pilot, "note", HOSTILE)
        await pilot.press("enter")
        await shows(pilot, "Refunded: 7.5 credits of 3", "0 credits of 0 requests")
        await pilot.press("a")
        await shows(pilot, "There is nothing to refund")
    assert [operator.admin_account(name).credits for name in ("ann", "ben")] == [15, Decimal("12.5")]
    assert operator.admin_transactions("ben", limit=1)[0].note == HOSTILE


async def test_what_has_changed_is_shown_anew_and_not_paid(backend: ServerProcess, operator: Client) -> None:
    fail(backend, 2, "cleo")
    async with signed_in(backend, "Incident", now=lambda: clock_at(2)) as pilot:
        await preview(pilot)
        await pilot.press("a")
        await shows(pilot, "2.5 credits of 1 request of 1 account")
        fail(backend, 2, "dan", events=7)
        await types(pilot, "note", "a full disk")
        await pilot.press("enter")
        await shows(pilot, "Not done")
        await shows(pilot, "5 credits of 2 requests", "dan")
        assert operator.admin_account("cleo").credits == 10
        await pilot.press("a")
        await types(pilot, "note", "a full disk")
        await pilot.press("enter")
        await shows(pilot, "Refunded: 5 credits of 2")
    assert operator.admin_account("dan").credits == Decimal("12.5")


async def test_another_window(backend: ServerProcess) -> None:
    fail(backend, 3, "eli")
    async with signed_in(backend, "Incident", now=lambda: clock_at(5)) as pilot:
        await preview(pilot)
        await shows(pilot, "0 credits of 0 requests")
        await pilot.press("w")
        await shows(pilot, "Refund what failed")
        for begin, end, words in (
            ("novel " * 50, "", "from (UTC): must be a date and time"),
            ("2026-03-01 04:00", "2026-03-01 03:00", "ends before it begins"),
            ("2026-01-01", "2026-03-01", "longer than 31 days"),
        ):
            await types(pilot, "begin", begin)
            await types(pilot, "end", end)
            await pilot.press("enter")
            await shows(pilot, words)
        await types(pilot, "begin", "2026-03-01 03:00")
        await types(pilot, "end", "2026-03-01T05:00:00+01:00")
        await pilot.press("enter")
        await shows(pilot, "2.5 credits of 1 request", "eli")
        await pilot.press("escape")
        await shows(pilot, "6 Refund, if needed")


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_how_refunds_look(backend: ServerProcess, size: tuple[int, int]) -> None:
    hour = 7 if size == SMALL else 9
    fail(backend, hour, "fay", "gus", reason=HOSTILE)
    async with signed_in(backend, "Incident", size=size, now=lambda: clock_at(hour)) as pilot:
        await preview(pilot)
        await shows(pilot, "5 credits of 2 requests", "2 refunds")
        await matches(pilot, f"refunds-{size[0]}")
