"""Finds tracks as connected components of hits; imported only in the sandbox, if the manifest requests it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from collidium.inference.messages import Code, Components, ModelRefused

#: Maximum number of edges of an event.
MAX_EDGES: Final = 5_000_000


def tracks(wanted: Components, edges: Any, scores: Any, hits: int) -> npt.NDArray[np.int64]:
    """Number the components of at least ``min_hits`` hits that edges with scores above ``cut`` connect.

    Parameters
    ----------
    wanted
        The options of the manifest.
    edges : array of int, shape (2, edges)
        Indices of hits.
    scores : array of float, shape (edges,) or (edges, 1)
    hits
        Number of hits.

    Returns
    -------
    numpy.ndarray of int64, shape (hits,)
        Track of each hit, or -1.

    Raises
    ------
    ModelRefused
    """
    if edges.dtype.kind != "i" or scores.dtype.kind != "f":
        raise ModelRefused(Code.OUTPUT_TYPE, f"edges are {edges.dtype}, scores {scores.dtype}")
    if edges.ndim == 0 or scores.reshape(-1).shape != edges.shape[1:] or len(edges) != 2:
        shapes = f"{wanted.edges} has {edges.shape}, {wanted.scores} {scores.shape}, not (2, E) and (E,)"
        raise ModelRefused(Code.OUTPUT_SHAPE, shapes)
    if len(scores) > MAX_EDGES:
        raise ModelRefused(Code.TOO_MANY_EDGES, f"{len(scores)} edges")
    if not np.isfinite(scores).all():
        raise ModelRefused(Code.NOT_FINITE, wanted.scores)
    if edges.size and not 0 <= edges.min() <= edges.max() < hits:
        raise ModelRefused(Code.OUT_OF_BOUNDS, f"{wanted.edges} refers to hits beyond 0 to {hits - 1}")
    if not hits:
        return np.empty(0, np.int64)
    first, second = edges[:, scores.reshape(-1) > wanted.cut]
    matrix = csr_array((np.ones(len(first), np.bool_), (first, second)), shape=(hits, hits))
    labels = connected_components(matrix, directed=False)[1].astype(np.int64)
    return np.where(np.bincount(labels)[labels] >= wanted.min_hits, labels, -1)
