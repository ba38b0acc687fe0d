"""Times that an operator types."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from collidium_tui.widgets.text import Times

TYPED = "2026-01-31 17:05"
CET = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("times", "typed", "hour"),
    [
        (Times(zone=CET), TYPED, 16),
        (Times(zone=CET, utc=True), TYPED, 17),
        (Times(zone=CET), f"{TYPED}:00Z", 17),
        (Times(zone=CET), f" {TYPED}+02:00 ", 15),
    ],
)
def test_a_time_is_read_in_the_zone_that_is_shown(times: Times, typed: str, hour: int) -> None:
    assert times.read(typed) == datetime(2026, 1, 31, hour, 5, tzinfo=UTC)


def test_what_is_shown_can_be_typed_again() -> None:
    at = datetime(2026, 1, 31, 17, 5, 9, tzinfo=UTC)
    for times in (Times(), Times(utc=True), Times(zone=CET)):
        assert times.read(times.show(at)) == at


@pytest.mark.parametrize(
    "typed", ["", "now", "[red]", "2026-02-30 10:00", "0001-01-01", "9999-12-31 23:59-12:00", "a novel " * 99]
)
def test_invalid_times_are_rejected(typed: str) -> None:
    with pytest.raises(ValueError, match=r"^must be a (date and time|time in this century)"):
        Times(zone=CET).read(typed)
