"""The state of a challenge by its dates and the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collidium.challenges import State, state_of
from collidium.challenges.models import Challenge
from collidium.organising.changes import _problems

OPENS = datetime(2027, 6, 1, tzinfo=UTC)
CLOSES = OPENS + timedelta(days=30)


@pytest.mark.parametrize(
    ("days", "ended", "state"),
    [
        (-1, False, "upcoming"),
        (0, False, "open"),
        (30, False, "closed"),
        (31, True, "practice"),
        (15, True, "practice"),
        (-1, True, "practice"),
    ],
)
def test_a_clock_that_is_set_back_opens_nothing_again(days: int, ended: bool, state: State) -> None:
    row = Challenge(name="jets-2027", task="jets", opens_at=OPENS, closes_at=CLOSES, practice=True)
    row.ended_at = CLOSES if ended else None
    assert state_of(row, OPENS + timedelta(days=days)) == state


def test_what_has_ended_gets_no_other_dates() -> None:
    """Also if the clock is set back to before the end."""
    later = datetime.now(UTC) + timedelta(days=30)
    row = Challenge(name="jets-2027", task="jets", closes_at=later, ended_at=later)
    assert list(_problems(row, {"title": "x"})) == []
    ((field, problem),) = _problems(row, {"closes_at": later + timedelta(days=1)})
    assert field == "closes_at"
    assert "it closed already" in problem
