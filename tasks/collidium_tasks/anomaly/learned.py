"""The baselines `mixture` and `weak`, which learn without labels of events; and their ONNX models.

`mixture` scores how rare an event is in the Standard Model, `weak` how typical it is of a mix with signal.

Both use features that the forest lacks; with its ten they gain 0.025 ± 0.021. `weak` is a strongly
regularised logistic regression, since forests of trees reach 0.72. It depends on its mix: with 50 signals,
0.960 in one and 0.863 in another.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Tables
from collidium_tasks.anomaly.baselines import NAMES, TRAINING, Floats, features, read_features, standard_model
from collidium_tasks.common import Read, shipped
from collidium_tasks.networks import Arrays, Files, files, graph, loaded, saved

MIXTURE: Final = "mixture.npz"
WEAK: Final = "weak.npz"
#: Indices in NAMES of the features that both use: few, since there are few training events.
CHOSEN: Final = [
    NAMES.index(name)
    for name in (
        "tracks",
        "track_pt",
        "hardest_track_pt",
        "displaced_tracks",
        "missing_transverse_energy",
        "trackless_transverse_energy",
        "hard_towers",
    )
]
#: The mix with signal, whose labels are not used, and the events of each training set to compare it with.
MIX: Final = "anomaly-eval"
_KNOWN: Final = 1200

_MANIFEST = """task = "anomaly"
batch = "events"

[inputs]
x = { source = "features/event", dtype = "float64" }

[outputs]
score = "anomaly_score"
"""
_VALUES = f"(double[N, {len(NAMES)}] x) => (double[N, 1] score)"
_SCALED = "own = Gather <axis = 1> (x, chosen) shifted = Sub(own, mean) scaled = Div(shifted, spread)"


def mixture(tables: Tables) -> pa.Table:
    """A score for each event: minus the logarithm of its density among events of the Standard Model.

    The density is a mixture of eight Gaussians in seven features. `collidium train-baseline anomaly/mixture`
    fits it to 100 events of each of four channels that `collidium seed` makes.
    """
    return _scored(tables, -log_density(weights(MIXTURE), features(tables)[:, CHOSEN]))


def weak(tables: Tables) -> pa.Table:
    """A score for each event: how likely it is of a mix with signal, not of the Standard Model alone.

    A logistic regression on seven features and their products, trained without labels of events (E. Metodiev,
    B. Nachman and J. Thaler, arXiv:1708.02949). `collidium train-baseline anomaly/weak` trains it to separate
    the mix that `collidium seed` makes, of which it does not know the truth, from its training sets. The file
    of the package is of a mix of three times as many events.
    """
    return _scored(tables, mixness(weights(WEAK), features(tables)[:, CHOSEN]))


def _scored(tables: Tables, score: Floats) -> pa.Table:
    # In single precision, so that scores do not depend on the other events in the block.
    column = pa.array(score.astype(np.float32))
    return tables["tracks"].select(["event_id"]).append_column("anomaly_score", column)


@cache
def weights(name: str) -> Arrays:
    """Return the shipped parameters of MIXTURE or WEAK."""
    return loaded(shipped(__name__, name))


def mixness(arrays: Arrays, x: Floats) -> Floats:
    """Return the logit of the regression at features of shape (events, features); shape (events,)."""
    found: Floats = _terms((x - arrays["mean"]) / arrays["spread"]) @ arrays["slopes"]
    return found


def _terms(scaled: Floats) -> Floats:
    """Return the features and their pairwise products."""
    one, other = np.triu_indices(scaled.shape[1])
    return np.hstack([scaled, scaled[:, one] * scaled[:, other]])


def log_density(arrays: Arrays, x: Floats) -> Floats:
    """Return the log density of the mixture at features of shape (events, features); shape (events,)."""
    scaled = (x - arrays["mean"]) / arrays["spread"]
    residuals = scaled[:, None, :] - arrays["centres"]
    whitened = np.einsum("nki,kij->nkj", residuals, arrays["roots"])
    logs = arrays["logs"] - (whitened**2).sum(axis=2) / 2
    highest = logs.max(axis=1, keepdims=True)
    density: Floats = highest[:, 0] + np.log(np.exp(logs - highest).sum(axis=1))
    return density


def train_mixture(read: Read) -> bytes:
    """Fit the mixture; return its file. Needs scikit-learn."""
    from sklearn.mixture import GaussianMixture

    x = standard_model(read)[:, CHOSEN]
    scaling = {"mean": x.mean(axis=0), "spread": x.std(axis=0)}
    # Annotated as None before the fit.
    fit = cast(Any, GaussianMixture(8, reg_covar=0.1, n_init=3, random_state=20))
    fit.fit((x - scaling["mean"]) / scaling["spread"])
    roots = fit.precisions_cholesky_
    logs = np.log(fit.weights_) + np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return saved({**scaling, "centres": fit.means_, "roots": roots, "logs": logs})


def train_weak(read: Read) -> bytes:
    """Fit the regression; return its file. Needs scikit-learn."""
    from sklearn.linear_model import LogisticRegression

    mix = read_features(read, MIX, None)
    known = np.concatenate([read_features(read, dataset, _KNOWN) for dataset in TRAINING])
    x = np.concatenate([known, mix])[:, CHOSEN]
    scaling = {"mean": x.mean(axis=0), "spread": x.std(axis=0)}
    terms = _terms((x - scaling["mean"]) / scaling["spread"])
    widths = terms.std(axis=0)
    # C minimises the log loss of cross-validation in 1e-4 to 0.1, which needs no labels either.
    fit = LogisticRegression(C=3e-3, class_weight="balanced", max_iter=1000)
    fit.fit(terms / widths, np.repeat([0, 1], [len(known), len(mix)]))
    return saved({**scaling, "slopes": fit.coef_[0] / widths})


def mixture_model() -> Files:
    """Return the baseline `mixture` as a model. Needs onnx."""
    model = graph(
        f"""mixture {_VALUES} {{
            {_SCALED}
            each = Unsqueeze(scaled, middle)
            residuals = Sub(each, centres)
            rows = Unsqueeze(residuals, middle_of_all)
            whitened = MatMul(rows, roots)
            squares = ReduceSumSquare <axes = [2, 3], keepdims = 0> (whitened)
            halves = Mul(squares, half)
            densities = Sub(logs, halves)
            density = ReduceLogSumExp <axes = [1], keepdims = 1> (densities)
            score = Neg(density)
        }}""",
        chosen=np.array(CHOSEN),
        middle=np.array([1]),
        middle_of_all=np.array([2]),
        half=np.float64(0.5),
        **weights(MIXTURE),
    )
    return files(model, _MANIFEST)


def weak_model() -> Files:
    """Return the baseline `weak` as a model. Needs onnx."""
    arrays = weights(WEAK)
    one, other = np.triu_indices(len(CHOSEN))
    model = graph(
        f"""weak {_VALUES} {{
            {_SCALED}
            left = Gather <axis = 1> (scaled, one)
            right = Gather <axis = 1> (scaled, other)
            products = Mul(left, right)
            terms = Concat <axis = 1> (scaled, products)
            score = MatMul(terms, slopes)
        }}""",
        chosen=np.array(CHOSEN),
        one=one,
        other=other,
        **{**arrays, "slopes": arrays["slopes"][:, None]},
    )
    return files(model, _MANIFEST)
