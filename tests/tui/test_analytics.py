"""The screen Analytics: channels of a month, days, failures."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.tui import seeding
from tests.tui.conftest import ADMIN_TOKEN
from tests.tui.consoles import LARGE, SMALL, answers, matches, shows, signed_in, text

from collidium.client import ChannelUsage, DayUsage, Failures
from collidium.testing.server import ServerProcess
from collidium_tui.screens.analytics import DAYS, Analysis

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
THIS_MONTH = f"{TODAY:%Y-%m}"
EARLIER = (TODAY.replace(day=1) - timedelta(days=1)).replace(day=1)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of which one request was ordered today, and three at the beginning of the month before."""
    rows = [
        seeding.ended(1, TODAY, node_hours=Decimal("7.5")),
        seeding.ended(2, EARLIER, channel="zee", node_hours=Decimal(3)),
        seeding.ended(3, EARLIER, channel="jets", node_hours=Decimal(1), state="failed"),
        seeding.ended(4, EARLIER, channel="jets", node_hours=Decimal(1)),
    ]
    with ServerProcess(tmp_path_factory.mktemp("used"), env={"ADMIN_TOKEN": ADMIN_TOKEN}) as server:
        seeding.seed(server, seeding.requests(rows))
        yield server


async def test_months_are_chosen_and_none_that_is_to_come(used: ServerProcess) -> None:
    async with signed_in(used, "Analytics") as pilot:
        await shows(
            pilot, f"{THIS_MONTH}: 0 of 1 that ended failed (0.0 %); 1 ordered, 7.5 node-hours", "ttbar"
        )
        await pilot.press("left_square_bracket")
        await shows(pilot, f"{EARLIER:%Y-%m}: 1 of 3 that ended failed (33.3 %); 3 ordered, 5.0 node-hours")
        assert text(pilot).index("zee") < text(pilot).index("jets")
        await pilot.press("right_square_bracket")
        await shows(pilot, f"{THIS_MONTH}: 0 of 1", "ttbar")
        await pilot.press("right_square_bracket")
        await pilot.press("left_square_bracket", "left_square_bracket")
        other = (EARLIER - timedelta(days=1)).replace(day=1)
        await shows(pilot, f"{other:%Y-%m}: no requests were ordered or ended", "0 channels")


async def test_days_are_bars_or_a_table_that_is_exported(
    used: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with signed_in(used, "Analytics", size=LARGE) as pilot:
        await shows(pilot, f"last {DAYS} days: ", "node-hours on each of the last 30 days (UTC)", "7.5┤")
        await pilot.press("d")
        await shows(pilot, f"{DAYS} days", f"{TODAY - timedelta(days=20):%Y-%m-%d}")
        await pilot.press("e")
        await shows(pilot, f"{DAYS} days written to")
        await pilot.press("d")
        await shows(pilot, "7.5┤")
    (path,) = tmp_path.iterdir()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    # By its day: the last one is tomorrow where midnight has passed since.
    assert {"day": f"{TODAY:%Y-%m-%d}", "requests": "1", "node-hours": "7.5"} in rows
    assert len(rows) == DAYS


async def test_it_survives_every_size_and_the_other_theme(used: ServerProcess) -> None:
    async with signed_in(used, "Analytics") as pilot:
        for width in (1, 3, 8, 11, 13, 40, 200):
            for height in (1, 3, 6, 60):
                await pilot.resize_terminal(width, height)
        await pilot.resize_terminal(*SMALL)
        await pilot.press("t")
        await shows(pilot, "7.5┤")


def _days(values: list[int]) -> tuple[DayUsage, ...]:
    first = date(2026, 1, 31) - timedelta(days=len(values) - 1)
    return tuple(
        DayUsage(f"{first + timedelta(days=day)}", Decimal(value), value) for day, value in enumerate(values)
    )


ANALYSIS = Analysis(
    Failures(month="2026-01", failure_rate=12.5, failed=1000, finished=8000),
    (
        ChannelUsage("ttbar", 6000, Decimal("12345.678")),
        ChannelUsage("[red]higgs[/red]", 2500, Decimal("6000")),
        ChannelUsage("zee", 12, Decimal("0.012")),
    ),
    _days([0, 0, 1, 100, 400, 50, 0, 25, 12, 6, *range(0, 400, 20)]),
)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_it_is_shown(backend: ServerProcess, size: tuple[int, int]) -> None:
    async with signed_in(backend, "Analytics", size=size, now=lambda: NOON) as pilot:
        await answers(pilot, ANALYSIS)
        await matches(pilot, f"analytics-{size[0]}")
        await pilot.press("d")
        await shows(pilot, "400.0 ██")
        await matches(pilot, f"analytics-days-{size[0]}")


async def test_days_without_requests_show_a_text_and_an_empty_chart(backend: ServerProcess) -> None:
    nothing = Analysis(Failures("2026-01", 0.0, 0, 0), (), _days([0] * DAYS))
    async with signed_in(backend, "Analytics", now=lambda: NOON) as pilot:
        await answers(pilot, nothing)
        await shows(pilot, "2026-01: no requests were ordered or ended", "0 channels")
        await shows(pilot, "last 30 days: nothing was ordered", "(UTC): none", "0.0┤")
        assert "█" not in text(pilot)
