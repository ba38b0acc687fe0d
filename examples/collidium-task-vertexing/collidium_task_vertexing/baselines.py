"""Honest answers from tracks: the piece of the beam line where most, or the hardest, tracks begin."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths
from collidium.contracts.task import Tables

#: Length of the piece, in mm.
LENGTH = 1.0

Floats = npt.NDArray[np.float64]


def densest(tables: Tables) -> pa.Table:
    """The mean z0 of the tracks within the millimetre that has the most."""
    return _windows(tables, lambda theta, qop: np.ones_like(theta))


def hardest(tables: Tables) -> pa.Table:
    """The mean z0 of the tracks within the millimetre that has the largest sum of squared pt, so weighted."""
    return _windows(tables, lambda theta, qop: (np.sin(theta) / qop) ** 2)


def _windows(tables: Tables, weight: Callable[[Floats, Floats], Floats]) -> pa.Table:
    """An answer for each event that has tracks."""
    tracks = tables["tracks"]
    flat = flatten(tracks, ["z0", "theta", "qop"])
    z0, theta, qop = (np.asarray(flat[name], dtype=np.float64) for name in ("z0", "theta", "qop"))
    weights = weight(theta, qop)
    lengths = list_lengths(tracks, "z0")
    stops = np.cumsum(lengths)
    some = lengths > 0
    spans = zip((stops - lengths)[some].tolist(), stops[some].tolist(), strict=True)
    found = [_heaviest(z0[start:stop], weights[start:stop]) for start, stop in spans]
    events = np.asarray(tracks["event_id"])[some]
    return pa.table({"event_id": pa.array(events), "z": pa.array(found, pa.float64())})


def _heaviest(z0: Floats, weight: Floats) -> float:
    """The weighted mean of the window that weighs most."""
    order = np.argsort(z0, kind="stable")
    z0, weight = z0[order], weight[order]
    stops = np.searchsorted(z0, z0 + LENGTH, side="right")
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    first = int(np.argmax(sums[stops] - sums[: len(z0)]))
    window = slice(first, int(stops[first]))
    return float(np.average(z0[window], weights=weight[window]))
