"""A Gaussian mixture scores how rare an event is among those of the Standard Model."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Tables
from collidium_tasks.anomaly.baselines import Floats, features, standard_model
from collidium_tasks.common import Read, shipped
from collidium_tasks.networks import Arrays, loaded, saved

MIXTURE: Final = "mixture.npz"


def mixture(tables: Tables) -> pa.Table:
    """A score for each event: minus the logarithm of its density among events of the Standard Model.

    The density is a mixture of eight Gaussians in ten features. `collidium train-baseline anomaly/mixture`
    fits it to 100 events of each of four channels that `collidium seed` makes.
    """
    # In single precision: sums in another order, as with other events next to them, agree to that.
    score = pa.array(-log_density(weights(), features(tables)).astype(np.float32))
    return tables["tracks"].select(["event_id"]).append_column("anomaly_score", score)


@cache
def weights() -> Arrays:
    """The numbers of the mixture, as they come with the package."""
    return loaded(shipped(__name__, MIXTURE))


def log_density(arrays: Arrays, x: Floats) -> Floats:
    """The logarithm of the density of a mixture at features, shape (events, features); shape (events,)."""
    scaled = (x - arrays["mean"]) / arrays["spread"]
    residuals = scaled[:, None, :] - arrays["centres"]
    whitened = np.einsum("nki,kij->nkj", residuals, arrays["roots"])
    logs = arrays["logs"] - (whitened**2).sum(axis=2) / 2
    highest = logs.max(axis=1, keepdims=True)
    density: Floats = highest[:, 0] + np.log(np.exp(logs - highest).sum(axis=1))
    return density


def train_mixture(read: Read) -> bytes:
    """The file of the mixture. Needs scikit-learn."""
    from sklearn.mixture import GaussianMixture

    x = standard_model(read)
    scaling = {"mean": x.mean(axis=0), "spread": x.std(axis=0)}
    # To type checkers its results may be None, as they are before the fit.
    fit = cast(Any, GaussianMixture(8, reg_covar=1e-3, n_init=3, random_state=20))
    fit.fit((x - scaling["mean"]) / scaling["spread"])
    roots = fit.precisions_cholesky_
    logs = np.log(fit.weights_) + np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return saved({**scaling, "centres": fit.means_, "roots": roots, "logs": logs})
