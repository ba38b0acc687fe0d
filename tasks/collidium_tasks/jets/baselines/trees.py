"""Gradient-boosted trees on features of jets (J. Friedman, Annals of Statistics 29 (2001) 1189).

They are trained, on first use, on jets that the package ships, from ``ttbar-train`` of ``collidium seed``.

So they are the same everywhere, without a pickle of a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import Tables
from collidium_tasks.common import Read, labels, shipped
from collidium_tasks.jets.baselines import predictions
from collidium_tasks.jets.baselines.features import Features, features
from collidium_tasks.jets.card import BOTTOM, CHARM
from collidium_tasks.networks import loaded, saved

#: File of training jets, written by ``collidium train-baseline jets/trees``.
TRAINING: Final = "trees.npz"
_SETTINGS: Final[Mapping[str, Any]] = {
    "max_iter": 120,
    "learning_rate": 0.06,
    "max_leaf_nodes": 12,
    "min_samples_leaf": 30,
    "l2_regularization": 5.0,
    "early_stopping": False,
    "random_state": 5,
}


def reconstruct(tables: Tables) -> pa.Table:
    """Probabilities of each jet. Needs scikit-learn."""
    jets = features(tables)
    if not len(jets):
        return predictions(tables["jets"], np.empty(0), np.empty(0))
    with _one_thread():
        fitted = trained()
        probability = dict(
            zip(fitted.classes_.tolist(), fitted.predict_proba(jets.astype(np.float32)).T, strict=True)
        )
    return predictions(tables["jets"], probability[BOTTOM], probability[CHARM])


def _one_thread() -> AbstractContextManager[Any]:
    """Limit libraries to one thread, so that sums have a fixed order."""
    from threadpoolctl import threadpool_limits

    limited: AbstractContextManager[Any] = threadpool_limits(1)
    return limited


@cache
def trained() -> Any:
    """Return the trees, an estimator of scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import, and an extra

    jets, flavour = training()
    with _one_thread():
        return HistGradientBoostingClassifier(**_SETTINGS).fit(jets.astype(np.float32), flavour)


def training() -> tuple[Features, npt.NDArray[np.uint8]]:
    """Return features, shape (jets, features), and flavours of the shipped training jets."""
    jets = loaded(shipped(__name__, TRAINING))
    return jets["features"].astype(np.float16), jets["flavour"].astype(np.uint8)


def training_jets(blocks: Iterable[Tables]) -> tuple[Features, npt.NDArray[np.uint8]]:
    """Return features and flavours of the jets of tables ``jets`` and ``tracks``."""
    made = [
        (features(tables), np.asarray(pc.list_flatten(labels(tables, "jets", "flavour"))))
        for tables in blocks
    ]
    jets, flavour = map(np.concatenate, zip(*made, strict=True))
    return jets, flavour


def train(read: Read) -> bytes:
    """Return the file of training jets from the dataset ``ttbar-train``."""
    jets, flavour = training_jets(read("ttbar-train", ("jets", "tracks")))
    return saved({"features": jets, "flavour": flavour})
