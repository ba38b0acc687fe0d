"""Rank intervals, compared with ranks counted draw by draw."""

from __future__ import annotations

import numpy as np

from collidium.submissions.rank_intervals import rank_intervals


def test_intervals_are_those_of_ranks_counted_draw_by_draw() -> None:
    random = np.random.default_rng(1)
    skill = np.sort(random.random(12))[::-1]
    draws = (skill[:, None] + random.normal(0, 0.05, (12, 200))).round(2).astype(np.float32)
    competes = np.arange(12) % 5 != 2
    counted = np.array(
        [
            [1 + sum(draws[i, d] > draws[n, d] for i in range(12) if competes[i]) for d in range(200)]
            for n in range(12)
        ]
    )
    found = rank_intervals(skill, draws, competes)
    for ranks, interval in zip(np.sort(counted, axis=1), found, strict=True):
        assert interval[:2] == (ranks[5], ranks[194])
    assert found[0].may_be_equal is False


def test_correlated_submissions_are_distinguished() -> None:
    """Differences of correlated scores are significant even if both scatter widely."""
    common = np.random.default_rng(2).normal(0, 1, 200)
    noise = np.random.default_rng(3).normal(0, 0.001, (3, 200))
    scores = np.array([0.5, 0.49, 0.4899])
    first, second, third = rank_intervals(
        scores, (scores[:, None] + common + noise).astype(np.float32), np.ones(3, bool)
    )
    assert (first[:2], second.may_be_equal, third.may_be_equal) == ((1, 1), False, True)
    assert second[:2] == third[:2] == (2, 3)
