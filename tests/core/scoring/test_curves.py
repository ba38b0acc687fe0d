"""Scores in bins: coarse, rounded, with the same edges for all submissions."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from math import sqrt

import hypothesis.strategies as st
import pytest
from hypothesis import given

from collidium.contracts.task import Curve
from collidium.scoring.uncertainty import (
    MAX_BINS,
    MAX_CURVES,
    MIN_ENTRIES,
    MIN_EVENTS,
    STEP_ENTRIES,
    binned_scores,
)

CURVE = Curve(
    name="efficiency_pt",
    title="Efficiency",
    quantity="pT (GeV)",
    edges=(0.5, 1, 2, 5),
    part=(40, 90, 3),
    whole=(100, 100, 4),
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
    found = binned_scores([curve])
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
        # Steps are 1, 2 or 5 times a power of ten.
        assert abs(value - part / whole) <= max(0.25 * error, 2.5 * STEP_ENTRIES / whole) / 2
        assert error > max(sqrt(value * (1 - value) / (whole + 3)), STEP_ENTRIES / whole / sqrt(12)) * 0.95


def of_counts(whole: int) -> list[tuple[float, float]]:
    """The published value and error of a bin for each possible count."""
    curves = [
        replace(CURVE, edges=(0, 1), part=(part,), whole=(whole,), events=(MIN_EVENTS,))
        for part in range(whole + 1)
    ]
    return [(score.values[0], score.errors[0]) for curve in curves for score in binned_scores([curve])]


@pytest.mark.parametrize("whole", [MIN_ENTRIES, 137, 1000, 20_000])
def test_one_entry_seldom_shows_and_moves_one_step(whole: int) -> None:
    """The limit on information per bin that docs/benchmarks.md states."""
    found = of_counts(whole)
    assert len(set(found)) <= whole / STEP_ENTRIES + 1
    assert sum(a != b for a, b in pairwise(found)) <= whole / STEP_ENTRIES
    step = max(0.25 * max(error for _, error in found), 2.5 * STEP_ENTRIES / whole)
    assert all(0 <= b - a <= step for (a, _), (b, _) in pairwise(found))
    # Neither "none" nor "all" is ever certain.
    assert found[0] == found[1]
    assert found[-1] == found[-2]


def test_errors_of_thresholds_are_added() -> None:
    one = replace(CURVE, edges=(0, 1), part=(200,), whole=(1000,), events=(500,), errors=(0.03,))
    (score,) = binned_scores([one])
    assert (score.values, score.errors) == ((0.2,), (0.033,))


def test_edges_depend_on_no_score() -> None:
    """Bins can be compared between submissions, and better scores reveal no new bin."""
    better = replace(CURVE, part=CURVE.whole)
    assert binned_scores([CURVE])[0].edges == binned_scores([better])[0].edges == (0.5, 1, 5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"edges": (0.5, 1, 2)},
        {"edges": (0.5, 1, 1, 5)},
        {"edges": (0.5, 1, 2, float("inf"))},
        {"part": (101, 90, 3)},
        {"part": (-1, 90, 3)},
        {"events": (30, 40)},
        {"errors": (0.1, 0.1)},
        {"errors": (0.1, 0.1, float("nan"))},
        {"edges": (0,), "part": (), "whole": (), "events": ()},
        {"edges": range(102), "part": [0] * 101, "whole": [0] * 101, "events": [0] * 101},
    ],
)
def test_a_broken_curve_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="efficiency_pt"):
        binned_scores([replace(CURVE, **wrong)])


def test_too_many_curves_are_refused() -> None:
    with pytest.raises(ValueError, match="31"):
        binned_scores([CURVE] * (MAX_CURVES + 1))
