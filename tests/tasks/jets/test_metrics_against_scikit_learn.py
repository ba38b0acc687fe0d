"""Metrics agree with scikit-learn, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from .events import TASK, block


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("digits", [1, 2, 17], ids=["many ties", "some ties", "no ties"])
def test_metrics_are_those_of_scikit_learn(seed: int, digits: int) -> None:
    random = np.random.default_rng(seed)
    flavour = random.choice((0, 4, 5), 900, p=(0.6, 0.15, 0.25))
    three = np.array([random.dirichlet([1 + 2 * (f == 5), 1 + (f == 4), 1 + 2 * (f == 0)]) for f in flavour])
    probabilities = np.round(three, digits)
    rows = {(1, jet): tuple(one) for jet, one in enumerate(probabilities.tolist())}
    found = TASK.metrics(TASK.score(block(rows, (tuple(flavour.tolist()),))))
    assert found["btag_auc"] == pytest.approx(
        metrics.roc_auc_score(flavour == 5, probabilities[:, 0]), rel=1e-12
    )
    for name, other, column in (("light", 0, 2), ("c", 4, 1)):
        chosen = (flavour == 5) | (flavour == other)
        b, others = probabilities[chosen, 0], probabilities[chosen, column]
        score = np.where(b + others > 0, b / np.where(b + others > 0, b + others, 1), 0.5)
        passing, found_b, _ = metrics.roc_curve(flavour[chosen] == 5, score, drop_intermediate=False)
        background = np.interp(0.7, found_b, passing)
        enough = background * np.count_nonzero(flavour == other) >= 25
        assert found.get(f"{name}_rejection_70") == (
            pytest.approx(1 / background, rel=1e-12) if enough else None
        ), name
