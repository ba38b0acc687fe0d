"""An isolation forest: how few random cuts set an event apart from those of the Standard Model.

F. T. Liu, K. M. Ting and Z.-H. Zhou, Isolation Forest, IEEE International Conference on Data Mining (2008)
413. It is grown from features of simulated Standard Model events that come with the package, so no score
depends on the other events of the mix.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Tables
from collidium_tasks.anomaly.baselines.features import NAMES, Floats, features
from collidium_tasks.learning import shipped

#: Features of events of the Standard Model; :mod:`~collidium_tasks.anomaly.baselines.reference` wrote it.
REFERENCE: Final = "standard_model.csv"
_TREES: Final = 200
_SEED: Final = 20


def reconstruct(tables: Tables) -> pa.Table:
    """A score for each event, between 0 and 1: the more, the easier it is set apart. Needs scikit-learn."""
    score = pa.array(-_grown().score_samples(features(tables)), pa.float64())
    return tables["tracks"].select(["event_id"]).append_column("anomaly_score", score)


@cache
def _grown() -> Any:
    from sklearn.ensemble import IsolationForest  # slow to import, and an extra

    return IsolationForest(n_estimators=_TREES, random_state=_SEED).fit(reference())


def reference() -> Floats:
    """Features of events of the Standard Model, shape (events, features)."""
    header, *rows = shipped(__name__, REFERENCE).decode("ascii").splitlines()
    if header.split(",") != list(NAMES):
        raise ValueError(f"{REFERENCE} has other features: make it anew")
    return np.array([row.split(",") for row in rows], np.float64)
