"""The screen Usage: who used most, as numbers and as bars."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests.tui import seeding
from tests.tui.consoles import LARGE, SMALL, answers, matches, shows, signed_in, text
from textual.pilot import Pilot

from collidium.client import Usage, UserUsage
from collidium.testing.server import ServerProcess
from collidium_tui.screens.analytics import MAX_ACCOUNTS
from collidium_tui.widgets.table import Table


def accounts(pilot: Pilot[None]) -> list[str]:
    """From top to bottom, as they stand on the screen."""
    lines = text(pilot).splitlines()
    head = next(number for number, line in enumerate(lines) if "account" in line and "share" in line)
    return [line.split()[0] for line in lines[head + 1 :] if "." in line and line.startswith(" ")]


def bars(pilot: Pilot[None]) -> dict[str, int]:
    """How many whole cells the bar of each account has."""
    return {line.split()[0]: line.count("█") for line in text(pilot).splitlines() if "█" in line}


@pytest.fixture(scope="module")
def used(backend: ServerProcess) -> ServerProcess:
    """A server of which 60 accounts ordered this month, the last one most."""
    month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows = [
        seeding.ended(
            number,
            month + timedelta(seconds=number),
            hub_username=f"user{number:02d}",
            node_hours=Decimal(number),
        )
        for number in range(1, 61)
    ]
    seeding.seed(backend, seeding.requests(rows))
    return backend


async def test_the_accounts_that_used_most_are_shown_with_their_share(used: ServerProcess) -> None:
    async with signed_in(used, "Usage") as pilot:
        await shows(pilot, "60 requests, 1,830.0 node-hours", f"of {MAX_ACCOUNTS} accounts below: 1,775.0")
        await shows(pilot, "user60", "3.3", "60.0", f"{MAX_ACCOUNTS} accounts")
        found = bars(pilot)
        assert found["user60"] > found["user50"] > 0
        # As long as they are much, to the cell.
        assert found["user50"] == pytest.approx(found["user60"] * 50 / 60, abs=1)


async def test_accounts_are_sorted_by_any_column(used: ServerProcess) -> None:
    async with signed_in(used, "Usage") as pilot:
        assert accounts(pilot)[:2] == ["user60", "user59"]
        await pilot.press("s")
        assert accounts(pilot)[:2] == ["user11", "user12"]
        await pilot.press("S")
        assert accounts(pilot)[:2] == ["user60", "user59"]
        await pilot.press("s", "s", "s")  # by node-hours
        assert accounts(pilot)[:2] == ["user60", "user59"]
        await pilot.press("S")
        assert accounts(pilot)[:2] == ["user11", "user12"]
        await pilot.press("ctrl+end", "c")
        assert pilot.app.clipboard == "user60"
        header = pilot.app.screen.query_one(Table).region
        await pilot.click(offset=(header.x + 3, header.y))
        assert accounts(pilot)[:2] == ["user11", "user12"]


async def test_bars_fill_the_width_that_there_is(used: ServerProcess) -> None:
    async with signed_in(used, "Usage") as pilot:
        narrow = bars(pilot)["user60"]
        await pilot.resize_terminal(120, 30)
        await shows(pilot, "█" * (narrow + 20))
        assert bars(pilot)["user60"] == narrow + 40
        for size in ((20, 5), (2, 1), (1, 1), (120, 30)):
            await pilot.resize_terminal(*size)
        await shows(pilot, "█" * (narrow + 40))


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
USAGE = Usage(
    month="2026-01",
    total_node_hours=Decimal("1234567.5"),
    total_requests=98765,
    users=(
        UserUsage("ada", Decimal("800000.25"), 60000),
        UserUsage("[b]grace[/b]", Decimal("400000"), 30000),
        UserUsage("日本語の人" * 5, Decimal("34567"), 8764),
        UserUsage("emmy", Decimal("0.25"), 1),
        UserUsage("lise", Decimal(0), 0),
    ),
)


async def test_a_month_without_requests_is_shown_in_words(backend: ServerProcess) -> None:
    async with signed_in(backend, "Usage") as pilot:
        await answers(pilot, Usage("2026-01", Decimal(0), 0, ()))
        await shows(pilot, "2026-01 (UTC): no requests yet.", "0 accounts")


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_it_is_shown(backend: ServerProcess, size: tuple[int, int]) -> None:
    async with signed_in(backend, "Usage", size=size, now=lambda: NOON) as pilot:
        await answers(pilot, USAGE)
        await matches(pilot, f"usage-{size[0]}")
