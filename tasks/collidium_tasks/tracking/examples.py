"""The baseline `naive` as models of both kinds: labels of hits from the graph, and edges between hits.

They need onnx. Directions are compared with the limits of bins, in double precision, and no angle is
computed: so both give the tracks of the baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from collidium_tasks.networks import Files, files, graph
from collidium_tasks.tracking.baselines import ETA_BINS, LARGEST_ETA, MIN_HITS, PHI_BINS

#: The bin of each hit: how many limits its direction has passed.
_BINS = """
    distance_x = Abs(x)
    distance_y = Abs(y)
    around = Add(distance_x, distance_y)
    safe_around = Max(around, tiny)
    part = Div(x, safe_around)
    descent = Sub(one, part)
    sign_y = Sign(y)
    is_below = Less(sign_y, nil)
    ascent = Sub(four, descent)
    turn = Where(is_below, ascent, descent)
    turns = Unsqueeze(turn, last)
    passed = GreaterOrEqual(turns, phi_limits)
    passed_number = Cast <to = 7> (passed)
    phi_bin = ReduceSum <keepdims = 0> (passed_number, last)
    squares_x = Mul(x, x)
    squares_y = Mul(y, y)
    squares = Add(squares_x, squares_y)
    radius = Sqrt(squares)
    safe_radius = Max(radius, tiny)
    slope = Div(z, safe_radius)
    slopes = Unsqueeze(slope, last)
    beyond = GreaterOrEqual(slopes, eta_limits)
    beyond_number = Cast <to = 7> (beyond)
    eta_bin = ReduceSum <keepdims = 0> (beyond_number, last)
    row = Mul(eta_bin, phi_bins)
    bin = Add(row, phi_bin)
"""
_MANIFEST = """task = "{task}"
batch = "event"

[inputs]
x = {{ source = "tracker_hits.x", dtype = "float64", unit = "mm" }}
y = {{ source = "tracker_hits.y", dtype = "float64", unit = "mm" }}
z = {{ source = "tracker_hits.z", dtype = "float64", unit = "mm" }}
"""


def examples(task: str) -> dict[str, Callable[[], Files]]:
    """Both, for a task with the inputs of tracking."""
    return {"labels": partial(labels_model, task), "edges": partial(edges_model, task)}


def _constants() -> dict[str, npt.NDArray[Any] | np.generic]:
    phi = np.arange(1, PHI_BINS) * (2 * np.pi / PHI_BINS)
    eta = (np.arange(1, ETA_BINS) / ETA_BINS * 2 - 1) * LARGEST_ETA
    sum_of_both = np.abs(np.cos(phi)) + np.abs(np.sin(phi))
    descent = 1 - np.cos(phi) / sum_of_both
    return {
        "tiny": np.float64(1e-9),
        "nil": np.float64(0),
        "one": np.float64(1),
        "four": np.float64(4),
        "last": np.array([1]),
        # From 0 at x over 1 at y and 2 at -x to 4: it grows with the azimuth, without a function of angles.
        "phi_limits": np.where(np.sin(phi) < -1e-12, 4 - descent, descent),
        "eta_limits": np.sinh(eta - 1e-15),  # simulated hits at 0 have rounding errors
        "phi_bins": np.int64(PHI_BINS),
    }


def labels_model(task: str) -> Files:
    """Hits of the same direction form a track; the graph numbers them."""
    model = graph(
        f"""labels (double[N] x, double[N] y, double[N] z) => (int64[N] track_id) {{
            {_BINS}
            zeros = ConstantOfShape <value = int64[1] {{0}}> (all_bins)
            shape = Shape(bin)
            each = Expand(unit, shape)
            counts = ScatterElements <reduction = "add"> (zeros, bin, each)
            hits = Gather(counts, bin)
            enough = GreaterOrEqual(hits, min_hits)
            track_id = Where(enough, bin, none)
        }}""",
        all_bins=np.array([ETA_BINS * PHI_BINS]),
        unit=np.int64(1),
        none=np.int64(-1),
        min_hits=np.int64(MIN_HITS),
        **_constants(),
    )
    return files(model, _MANIFEST.format(task=task) + '\n[outputs]\ntrack_id = "track_id"\n')


def edges_model(task: str) -> Files:
    """Each hit is connected to the next one of the same direction; the platform makes tracks of them."""
    model = graph(
        f"""edges (double[N] x, double[N] y, double[N] z) => (int64[2, E] edges, float[E] scores) {{
            {_BINS}
            size = Shape(bin)
            ordered, order = TopK <axis = 0, largest = 0, sorted = 1> (bin, size)
            from_all = Slice(order, first, minus_one)
            to_all = Slice(order, second, far)
            bin_from = Slice(ordered, first, minus_one)
            bin_to = Slice(ordered, second, far)
            same = Equal(bin_from, bin_to)
            scores = Cast <to = 1> (same)
            row_from = Unsqueeze(from_all, first)
            row_to = Unsqueeze(to_all, first)
            edges = Concat <axis = 0> (row_from, row_to)
        }}""",
        first=np.array([0]),
        second=np.array([1]),
        minus_one=np.array([-1]),
        far=np.array([2**62]),
        **_constants(),
    )
    postprocess = (
        '[postprocess]\nkind = "components"\nedges = "edges"\nscores = "scores"\n'
        f"cut = 0.5\nmin_hits = {MIN_HITS}\n"
    )
    return files(model, f"{_MANIFEST.format(task=task)}\n[outputs]\n\n{postprocess}")
