"""Curves of background against signal efficiency: values, errors, and what they disclose."""

from __future__ import annotations

from statistics import NormalDist

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import roc_curve

from collidium.contracts.task import Curve
from collidium_tasks.ranking import ROC_EVENTS, Roc, Scores, roc_curves

NORMAL = NormalDist()


def curves(roc: Roc, largest: int = 1) -> list[Curve]:
    return roc_curves("roc", "Background efficiency", "signal efficiency", roc, largest)


def test_values_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(1)
    is_signal = random.random(20_000) < 0.3
    score = np.round(random.normal(is_signal), 1)
    (curve,) = curves(Scores.of(score, is_signal))
    fpr, tpr, _ = roc_curve(is_signal, score, drop_intermediate=False)
    middles = np.add(curve.edges[1:], curve.edges[:-1]) / 2
    found = np.divide(curve.part, curve.whole)
    assert found == pytest.approx(np.interp(middles, tpr, fpr), abs=1 / curve.whole[0])


@pytest.mark.parametrize(("signal", "background"), [(200, 20_000), (20_000, 500)])
def test_errors_are_the_scatter_of_the_values(signal: int, background: int) -> None:
    """Of few signal that of the threshold, of few background that of its count."""
    random = np.random.default_rng(2)
    values, errors = [], []
    for _ in range(150):
        scores = Scores(np.sort(random.normal(1, 1, signal)), np.sort(random.normal(0, 1, background)))
        (curve,) = curves(scores)
        share = np.divide(curve.part, background)
        values.append(share)
        errors.append(np.hypot(curve.errors, np.sqrt(share * (1 - share) / background)))
    # The ends are skewed.
    scatter, mean = np.std(values, axis=0)[2:-1], np.mean(errors, axis=0)[2:-1]
    assert mean == pytest.approx(scatter, rel=0.25)
    truth = [1 - NORMAL.cdf(1 + NORMAL.inv_cdf(1 - x)) for x in np.arange(0.05, 1, 0.1)]
    assert np.mean(values, axis=0) == pytest.approx(truth, rel=0.25)


@pytest.mark.parametrize(("signal", "largest", "bins"), [(19, 1, 0), (20, 1, 1), (59, 1, 2), (900, 9, 5)])
def test_bins_have_enough_events_with_signal(signal: int, largest: int, bins: int) -> None:
    found = curves(Scores(np.arange(signal), np.arange(500)), largest)
    assert [len(curve.part) for curve in found] == [bins] * bool(bins)
    assert all(events == 500 // largest for curve in found for events in curve.events)


def test_one_class_alone_has_no_curve() -> None:
    assert curves(Scores(np.arange(100), np.arange(0))) == []
    assert curves(Scores(), largest=0) == []


few = st.integers(0, 6)


rows_of_both = st.tuples(
    st.lists(few, min_size=3 * ROC_EVENTS, max_size=70), st.lists(few, min_size=1, max_size=9)
)


@given(rows_of_both, st.booleans(), st.data())
def test_a_changed_score_with_the_same_area_is_not_seen(
    rows: tuple[list[int], list[int]], of_signal: bool, data: st.DataObject
) -> None:
    """One changed prediction: whatever its curve shows of it, the area under the curve does, too."""
    changed = data.draw(st.integers(0, len(rows[not of_signal]) - 1))

    def with_score(new: int) -> Scores:
        both = [list(scores) for scores in rows]
        both[not of_signal][changed] = new
        return Scores(*(np.sort(np.array(scores)) for scores in both), unscored_signal=1)

    before = with_score(rows[not of_signal][changed])
    same = [new for new in range(7) if with_score(new).pairs_won() == before.pairs_won()]
    assert curves(with_score(data.draw(st.sampled_from(same)))) == curves(before)
