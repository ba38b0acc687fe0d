"""Curves of resampled events are close to those of events that were merged again."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from collidium_tasks.ranking import Roc, Scores, resampled


def groups_of(rows: int, groups: int, decimals: int) -> list[Scores]:
    """Groups that differ, with rows that have no score, and equal scores as far as they are rounded."""
    rng = np.random.default_rng(rows)
    made = []
    for number in range(groups):
        is_signal = rng.random(rows // groups) < 0.1 + number / groups / 2
        score = np.round(rng.normal(size=len(is_signal)) + is_signal, decimals)
        made.append(Scores.of(score, is_signal, unscored_signal=number % 3, unscored_background=number % 2))
    return made


def numbers(curve: Roc) -> list[float]:
    return [
        curve.auc(),
        curve.signal_efficiency(Fraction(1, 100)),
        curve.background_efficiency(Fraction(7, 10)),
        curve.rejection(Fraction(7, 10)),
    ]


@pytest.mark.parametrize("decimals", [1, 8])
def test_many_rows(decimals: int) -> None:
    groups = groups_of(200_000, 20, decimals)
    draws = np.sort(np.random.default_rng(1).integers(0, 20, (25, 20))).tolist()
    binned = np.array([numbers(curve) for curve in resampled(groups, draws)])
    exact = np.array([numbers(Scores.merged([groups[number] for number in draw])) for draw in draws])
    scatter = exact.std(axis=0)
    assert (np.abs(binned - exact).max(axis=0) < scatter / 4).all()
    assert binned.std(axis=0) == pytest.approx(scatter, rel=0.02)


def test_few_rows_are_counted_exactly() -> None:
    groups = groups_of(1000, 10, 2)
    draws = [[0] * 10, [1, 1, 2, 3], list(range(10))]
    for draw, curve in zip(draws, resampled(groups, draws), strict=True):
        exact = Scores.merged([groups[number] for number in draw])
        assert numbers(curve) == pytest.approx(numbers(exact), rel=1e-12)


@pytest.mark.parametrize(
    "empty", [Scores(), Scores(unscored_background=2), Scores(unscored_signal=1, unscored_background=1)]
)
def test_draws_without_any_score(empty: Scores) -> None:
    groups = [empty, Scores.of(np.array([1.0, 2.0]), np.array([True, False]))]
    curves = list(resampled(groups, [[0, 0], [0, 1]]))
    for draw, curve in zip(([0, 0], [0, 1]), curves, strict=True):
        exact = Scores.merged([groups[number] for number in draw])
        assert numbers(curve) == pytest.approx(numbers(exact), rel=1e-12)
