"""Writes the model that measured speeds are relative to; a new one is a new scale."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from collidium.inference.timing import REFERENCE_COLUMNS
from collidium_tasks.networks import dense_graph, graph

PLACE = Path(__file__).parents[1] / "core/collidium/inference/reference.onnx"


def reference_model() -> bytes:
    """A dense network, 16 to 64 to 64 to 1, and the sines of its outputs: products, memory and functions."""
    chance = np.random.default_rng(20)
    widths = (REFERENCE_COLUMNS, 64, 64, 1)
    weights = {}
    for layer, (before, after) in enumerate(pairwise(widths)):
        weights[f"net_{layer}_weight"] = chance.normal(0, before**-0.5, (before, after)).astype(np.float32)
        weights[f"net_{layer}_bias"] = np.zeros(after, np.float32)
    lines = dense_graph("net", "x", len(widths) - 1)
    values = f"(float[N, {REFERENCE_COLUMNS}] x) => (float[N, 1] y)"
    return graph(f"reference {values} {{ {lines} y = Sin(net) }}", **weights)


if __name__ == "__main__":
    PLACE.write_bytes(reference_model())
