"""What the curve is where no library says so: by hand, for rows without a score, and however it is merged."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from collidium_tasks.ranking import Scores

HALF = Fraction(1, 2)
SEVEN_TENTHS = Fraction(7, 10)


def scores(signal: list[float], background: list[float], **unscored: int) -> Scores:
    rows = np.array([*signal, *background], np.float64)
    return Scores.of(rows, np.arange(len(rows)) < len(signal), **unscored)


def test_by_hand() -> None:
    """Of six pairs four are won, one is lost, and one is equal."""
    curve = scores([4.0, 2.0], [3.0, 2.0, 1.0])
    assert curve.auc() == 4.5 / 6
    assert curve.signal_efficiency(Fraction(1, 3)) == 0.5
    assert curve.signal_efficiency(HALF) == 0.75  # half of the pair of equals
    assert curve.background_efficiency(HALF) == 0
    assert curve.background_efficiency(Fraction(3, 4)) == HALF
    assert curve.rejection(Fraction(1)) == 1.5


def test_less_than_one_row_that_passes_counts_as_one() -> None:
    assert scores([3.0, 2.0], [1.0] * 50).rejection(SEVEN_TENTHS) == 50
    equals = scores([1.0] * 10, [1.0, *[0.0] * 49])
    assert equals.background_passing(SEVEN_TENTHS * 10) == 0.7
    assert equals.rejection(SEVEN_TENTHS) == 50


@pytest.mark.parametrize(
    "curve",
    [
        scores([], []),
        scores([1.0], []),
        scores([], [1.0]),
        scores([], [], unscored_signal=3),
        scores([], [], unscored_signal=3, unscored_background=4),
    ],
)
def test_an_empty_class_gives_nothing(curve: Scores) -> None:
    assert curve.auc() == 0
    assert curve.signal_efficiency(HALF) == 0
    assert curve.rejection(HALF) in (0, 1)


def test_zeros_of_either_sign_are_equal() -> None:
    assert scores([-0.0], [0.0]).auc() == scores([0.0], [-0.0]).auc() == 0.5


def test_integers_do_not_become_floats() -> None:
    """Next to each other, and the same number as float64."""
    large = np.array([2**53, 2**53 + 1], np.int64)
    assert Scores.of(large, np.array([False, True])).auc() == 1


def test_rows_without_a_score_lose_every_pair() -> None:
    curve = scores([2.0], [1.0, 0.0], unscored_signal=1, unscored_background=2)
    assert curve.auc() == 2 / 8
    assert curve.signal_efficiency(Fraction(1, 4)) == 0
    assert curve.signal_efficiency(HALF) == 0.5  # half of the background passes before any signal
    assert curve.signal_efficiency(Fraction(1)) == 1
    assert curve.background_efficiency(HALF) == 0.5
    assert curve.background_efficiency(SEVEN_TENTHS) == 1  # as much signal has no score


def test_leaving_out_never_pays() -> None:
    rng = np.random.default_rng(5)
    score, is_signal = rng.normal(size=400), rng.random(400) < 0.4
    score += is_signal
    whole = Scores.of(score, is_signal)
    for scored in (score > 1, score < 1, is_signal, ~is_signal, rng.random(400) < 0.9, score > 9):
        part = Scores.of(
            score[scored],
            is_signal[scored],
            unscored_signal=np.count_nonzero(is_signal & ~scored),
            unscored_background=np.count_nonzero(~is_signal & ~scored),
        )
        assert part.auc() < whole.auc()
        for rate in (Fraction(1, 100), SEVEN_TENTHS):
            assert part.signal_efficiency(rate) <= whole.signal_efficiency(rate)
            assert part.rejection(rate) <= whole.rejection(rate)


def test_merging_is_the_same_however_it_is_done() -> None:
    rng = np.random.default_rng(6)
    score, is_signal = rng.normal(size=1000).astype(np.float32), rng.random(1000) < 0.1
    whole = Scores.of(score, is_signal, unscored_signal=10, unscored_background=5)
    parts = [
        Scores.of(score[rows], is_signal[rows], unscored_signal=2, unscored_background=1)
        for rows in np.array_split(np.arange(1000), 5)
    ]
    nested = Scores.merged([parts[4], Scores.merged(parts[1:4]), Scores.merged([Scores()]), parts[0]])
    for merged in (Scores.merged(parts), nested):
        assert merged.signal.dtype == np.float32
        assert pickle.dumps(merged) == pickle.dumps(whole)
