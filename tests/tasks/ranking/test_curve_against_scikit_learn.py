"""The exact curve agrees with scikit-learn, whatever the scores are made of."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from sklearn import metrics

from collidium_tasks.ranking import Scores

RATES = [Fraction(1, 1000), Fraction(1, 100), Fraction(3, 10), Fraction(1, 2), Fraction(7, 10), Fraction(1)]

Made = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]


def normal(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float64]:
    return rng.normal(size=rows)


def rounded(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float64]:
    """Some forty values, so that most rows have equals in either class."""
    return np.round(rng.normal(size=rows), 1)


def two_values(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float64]:
    return rng.integers(0, 2, rows).astype(np.float64)


def constant(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float64]:
    return np.full(rows, 0.5)


def extreme(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float64]:
    """Very large and the smallest numbers, zeros of both signs among them."""
    numbers = [-1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 1e300]
    return rng.choice(np.array(numbers), rows)


def separated(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float64]:
    return np.arange(rows, dtype=np.float64)


@pytest.mark.parametrize("made", [normal, rounded, two_values, constant, extreme, separated])
@pytest.mark.parametrize("signal_part", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("rows", [50, 20_000])
def test_curve(made: Made, signal_part: float, rows: int) -> None:
    rng = np.random.default_rng(rows)
    score = made(rng, rows)
    is_signal = np.arange(rows) >= rows * (1 - signal_part)
    agrees(score, is_signal)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int32, np.int64, np.uint64])
def test_widths(dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(3)
    is_signal = rng.random(5000) < 0.3
    agrees((60 + 10 * rng.normal(size=5000) + is_signal).astype(dtype), is_signal)


def agrees(score: npt.NDArray[np.generic], is_signal: npt.NDArray[np.bool_]) -> None:
    curve = Scores.of(score, is_signal)
    false, true, _ = metrics.roc_curve(is_signal, score, drop_intermediate=False)
    assert curve.auc() == pytest.approx(metrics.roc_auc_score(is_signal, score), rel=1e-12)
    for rate in RATES:
        most_signal = np.interp(float(rate), false, true)
        least_background = np.interp(-float(rate), -true[::-1], false[::-1])
        assert curve.signal_efficiency(rate) == pytest.approx(most_signal, rel=1e-12, abs=1e-15)
        assert curve.background_efficiency(rate) == pytest.approx(least_background, rel=1e-12, abs=1e-15)
