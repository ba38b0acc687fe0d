"""Baselines of the task as models. They need onnx."""

from __future__ import annotations

import numpy as np

from collidium_tasks.anomaly.baselines import NAMES
from collidium_tasks.anomaly.learned import CHOSEN, MIXTURE, WEAK, weights
from collidium_tasks.graphs import Files, files, graph

_MANIFEST = """task = "anomaly"
batch = "events"

[inputs]
x = { source = "features/event", dtype = "float64" }

[outputs]
score = "anomaly_score"
"""
_VALUES = f"(double[N, {len(NAMES)}] x) => (double[N, 1] score)"
_SCALED = "own = Gather <axis = 1> (x, chosen) shifted = Sub(own, mean) scaled = Div(shifted, spread)"


def mixture_model() -> Files:
    """The mixture of Gaussians of the baseline `mixture`."""
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
    """The regression of the baseline `weak`."""
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
