"""Scores in bins: coarse, rounded, and of the same edges for all submissions."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import hypothesis.strategies as st
import pytest
from hypothesis import given

from collidium.contracts.task import Curve
from collidium.scoring.curves import MAX_BINS, MAX_CURVES, MIN_ENTRIES, MIN_EVENTS, shown

CURVE = Curve(
    name="efficiency_pt",
    title="Efficiency",
    quantity="pT (GeV)",
    edges=(0.5, 1, 2, 5),
    part=(40, 90, 3),
    whole=(80, 100, 4),
    events=(30, 40, 4),
)

bins = st.tuples(st.integers(0, 300), st.floats(0, 1), st.integers(0, 40))


def curve_of(rows: list[tuple[int, float, int]]) -> Curve:
    return replace(
        CURVE,
        edges=range(len(rows) + 1),
        part=[int(whole * share) for whole, share, _ in rows],
        whole=[whole for whole, _, _ in rows],
        events=[min(whole, events) for whole, _, events in rows],
    )


@given(st.lists(bins, min_size=1, max_size=MAX_BINS))
def test_bins_are_large_and_values_rounded(rows: list[tuple[int, float, int]]) -> None:
    curve = curve_of(rows)
    found = shown([curve])
    if not found:
        assert sum(curve.whole) < MIN_ENTRIES or max(curve.events) < MIN_EVENTS
        return
    (score,) = found
    assert (score.edges[0], score.edges[-1]) == (0, len(rows))
    parts, wholes = ([0, *accumulate(counts)] for counts in (curve.part, curve.whole))
    for low, high, value, error in zip(
        *(map(int, edges) for edges in (score.edges[:-1], score.edges[1:])),
        score.values,
        score.errors,
        strict=True,
    ):
        part, whole = parts[high] - parts[low], wholes[high] - wholes[low]
        assert whole >= MIN_ENTRIES
        assert max(curve.events[low:high]) >= MIN_EVENTS
        assert 0 <= value <= 1
        assert error > 0
        assert abs(value - part / whole) <= 0.051 * error
        assert value == 1 or abs(value / (0.1 * error) % 1 - 0.5) > 0.49


def test_edges_depend_on_no_score() -> None:
    """Submissions are compared bin by bin; and to get more right shows no new bin."""
    better = replace(CURVE, part=CURVE.whole)
    assert shown([CURVE])[0].edges == shown([better])[0].edges == (0.5, 1, 5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"edges": (0.5, 1, 2)},
        {"edges": (0.5, 1, 1, 5)},
        {"edges": (0.5, 1, 2, float("inf"))},
        {"part": (81, 90, 3)},
        {"part": (-1, 90, 3)},
        {"events": (30, 40)},
        {"edges": (0,), "part": (), "whole": (), "events": ()},
        {"edges": range(102), "part": [0] * 101, "whole": [0] * 101, "events": [0] * 101},
    ],
)
def test_a_broken_curve_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="efficiency_pt"):
        shown([replace(CURVE, **wrong)])


def test_too_many_curves_are_refused() -> None:
    with pytest.raises(ValueError, match="31"):
        shown([CURVE] * (MAX_CURVES + 1))
