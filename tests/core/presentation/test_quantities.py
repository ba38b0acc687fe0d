"""Numbers with uncertainties are written with their significant digits."""
# ruff: noqa: RUF001 -- minus signs and powers as they are shown

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from jinja2 import Environment, PackageLoader

from collidium.presentation.challenges import quota_text, split_texts
from collidium.presentation.quantities import amount_text, credits_text, time_until, written
from collidium.presentation.scores import origin_of, rank_text, score_text
from collidium.records import Place, Quota, Rescoring
from collidium_plugins.webapps.rendering import FILTERS
from collidium_tasks.tracking_latency import TrackingLatencyTask


@pytest.mark.parametrize(
    ("value", "error", "wanted"),
    [
        (0.91234, 0.0042, "0.9123 ± 0.0042"),
        (0.91234, 0.00999, "0.912 ± 0.010"),
        (0.912, 0.2, "0.91 ± 0.20"),
        (1.0, 0.0, "1"),
        (1.0, None, "1"),
        (0.0, None, "0"),
        (0.0, 0.01, "0.000 ± 0.010"),
        (None, None, "—"),
        (0.123456, None, "0.1235"),
        (12345.0, None, "12,345"),
        (123456.7, 1234.0, "123,500 ± 1,200"),
        (-0.5, 0.1, "−0.50 ± 0.10"),
        (1.2345e-9, 1.2e-10, "(1.23 ± 0.12)×10⁻⁹"),
        (3.2e12, None, "3.200×10¹²"),
        (1e-5, None, "1×10⁻⁵"),
    ],
)
def test_the_error_decides_the_digits(value: float | None, error: float | None, wanted: str) -> None:
    assert written(value, error) == wanted


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.floats(0, allow_nan=False, allow_infinity=False),
)
def test_any_finite_number_can_be_written(value: float, error: float | None) -> None:
    assert 1 <= len(written(value, error)) < 60


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("0.000", "0"), ("0.250", "0.25"), ("100", "100"), ("12345.500", "12,345.5"), ("1E+6", "1,000,000")],
)
def test_credits_are_written_exactly(value: str, wanted: str) -> None:
    assert amount_text(Decimal(value)) == wanted
    assert credits_text(Decimal(value)) == f"{wanted} credits"
    assert credits_text(Decimal("1.000")) == "1 credit"


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (3 * 86_400 + 9, "3 days"),
        (47 * 3600 + 9, "47 hours"),
        (119 * 60 + 9, "119 minutes"),
        (99, "less than 2 minutes"),
        (-5, "no time"),
    ],
)
def test_remaining_time_is_rounded_to_whole_units(seconds: int, wanted: str) -> None:
    assert time_until(datetime.now(UTC) + timedelta(seconds=seconds - 0.5)) == wanted


@pytest.mark.parametrize(
    ("percent", "seen", "wanted"), [(None, 0, []), (30, 0, [False]), (30, 4, [False, True])]
)
def test_split_warns_of_scores_that_were_seen(percent: int | None, seen: int, wanted: list[bool]) -> None:
    at = datetime.now(UTC)
    found = Rescoring("jets", False, at, 4, 4, public_percent=percent, seen_whole=seen)
    texts = split_texts(found)
    assert ["seen scores of 4 submissions on all events" in text for text in texts] == wanted
    assert all("on 30 per cent of the events" in text for text in texts[:1])


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("upcoming", "it opens on 2020-06-01 08:00 UTC, with 5 submissions a day then"),
        ("open", "3 of 5 submissions are left today; it closes on 2020-06-30 12:00 UTC, in no time"),
        ("closed", "it closed on 2020-06-30 12:00 UTC"),
        ("practice", "3 of 5 submissions are left today, for practice: it closed on 2020-06-30 12:00 UTC"),
    ],
)
def test_a_quota_is_shown_with_the_dates_that_matter(state: str, wanted: str) -> None:
    opens, closes = datetime(2020, 6, 1, 8, tzinfo=UTC), datetime(2020, 6, 30, 12, tzinfo=UTC)
    quota = Quota(5, 3, closes, state, opens, closes)
    assert quota_text(quota) == wanted


# -- what a leaderboard claims ----------------------------------------------------------------------------


def place(**fields: Any) -> Place:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return Place(
        **{"rank": 2, "submission_id": "a", "hub_username": "anna", "submitted_at": moment}
        | {"scores": {}, "credits_earned": Decimal(0)}
        | fields
    )


def test_a_score_without_an_error_says_so() -> None:
    metrics = sorted(TrackingLatencyTask.card.metrics, key=lambda metric: metric.self_reported)
    scored, timed = metrics[0], metrics[-1]
    assert [metric.self_reported for metric in (scored, timed)] == [False, True]
    assert score_text(1.0, None, scored) == score_text(1.0, 0.0, scored) == "1 (error unknown)"
    assert score_text(0.9, 0.01, scored) == "0.900 ± 0.010"
    assert (score_text(1.0, None, timed), score_text(None, None, scored)) == ("1", "—")


def test_measured_is_what_the_platform_ran() -> None:
    model: Any = object()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    of = (place(), place(verified_at=moment), place(verified_at=moment, model=model))
    assert [origin_of(one) for one in of] == ["self-reported", "verified", "measured"]


def test_baselines_show_no_rank() -> None:
    assert [rank_text(place()), rank_text(place(rank=1234)), rank_text(place(baseline=True))] == [
        "2",
        "1,234",
        "—",
    ]


@pytest.mark.parametrize(
    ("low", "high", "equal", "always", "wanted"),
    [
        (2, 2, True, False, "≈ above"),
        (2, 2, True, True, "2 ≈ above"),
        (2, 2, False, True, "2"),
        (1, 3, True, False, "≈ 1 to 3"),
        (1, 3, False, True, "1 to 3"),
    ],
)
def test_an_interval_repeats_no_rank(low: int, high: int, equal: bool, always: bool, wanted: str) -> None:
    templates = Environment(loader=PackageLoader("collidium_plugins.webapps"), autoescape=True)
    templates.filters |= FILTERS
    macros: Any = templates.get_template("webapps/metrics.html").module
    assert macros.interval(place(rank_low=low, rank_high=high, may_be_equal=equal), always) == wanted
