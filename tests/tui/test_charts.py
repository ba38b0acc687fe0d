"""Charts draw whatever a server answers."""

from __future__ import annotations

from decimal import Decimal

import pytest
from textual.app import App, ComposeResult

from collidium_tui.screens.analytics import DailyChart


class Charted(App[None]):
    def compose(self) -> ComposeResult:
        yield DailyChart("node-hours")


@pytest.mark.parametrize(
    ("day", "values"),
    [
        ("2026-11-21", [Decimal("1.7e308"), Decimal("-1.7e308")]),
        ("2026-11-21", [Decimal("1e-320")]),
        ("2026-11-21", [Decimal(-5), Decimal(0)]),
        ("", [Decimal(1), Decimal(2)]),
        ("\x1b[31m[red]" * 50, [Decimal(1)]),
        ("2026-11-21", [Decimal(number) for number in range(20_000)]),
    ],
)
async def test_no_number_of_days_or_hours_ends_the_console(day: str, values: list[Decimal]) -> None:
    async with Charted().run_test(size=(80, 24)) as pilot:
        pilot.app.query_one(DailyChart).show([day] * len(values), values)
        for size in ((1, 1), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert pilot.app.is_running
