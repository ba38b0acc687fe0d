"""Particles of hits, primary ancestors, and events with less pileup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.physics.ragged import Array, Integers, Ragged

#: Steps of pointer doubling, enough for 64 generations of particles.
_STEPS: Final = 6
#: ``vertex_primary`` of the hard scatter; pileup has larger numbers.
HARD_SCATTER: Final = 1


class Finder:
    """Finds rows of a table by event and id.

    Parameters
    ----------
    ids : Ragged of integers
        The ids of the rows, unique in each event: ``particles["particle_id"]``.

    Examples
    --------
    >>> ids = Ragged(np.array([7, 8, 7]), np.array([0, 2, 3]))
    >>> Finder(ids).rows(Ragged(np.array([8, 9, 7]), np.array([0, 1, 3]))).tolist()
    [1, -1, 2]
    """

    def __init__(self, ids: Ragged) -> None:
        self._known, number = np.unique(ids.values, return_inverse=True)
        keys = ids.event * max(len(self._known), 1) + number
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def rows(self, ids: Ragged) -> Integers:
        """Return the index of each id in the values of the table's columns, or -1.

        Parameters
        ----------
        ids : Ragged of integers
            Ids in the same events.

        Returns
        -------
        numpy.ndarray of int64, shape (values of ids,)
            For example of the particles of hits: ``particles["pdg_id"].values[rows]``.
        """
        if not len(self._keys):
            return np.full(len(ids.values), -1)
        wanted, is_possible = _converted(ids.values, self._known.dtype)
        number = np.minimum(np.searchsorted(self._known, wanted), len(self._known) - 1)
        key = ids.event * len(self._known) + number
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        is_found = is_possible & (self._known[number] == wanted) & (self._keys[at] == key)
        return np.where(is_found, self._order[at], -1)


def _converted(ids: Array, dtype: np.dtype[Any]) -> tuple[Array, npt.NDArray[np.bool_] | bool]:
    """Return ids in another type, and which of them it can hold; the others become arbitrary ones."""
    if ids.dtype.kind not in "iu" or dtype.kind not in "iu" or ids.dtype == dtype:
        return ids.astype(dtype), True
    limits = np.iinfo(dtype)
    return ids.astype(dtype), (ids >= limits.min) & (ids <= limits.max)


def primary_ancestor(primary: Array, parent: Integers) -> Integers:
    """Return the row of each particle's primary ancestor; its own for primaries, and without a parent.

    Parameters
    ----------
    primary : array of bool, shape (particles,)
        Column ``primary``.
    parent : array of int64, shape (particles,)
        The row of each particle's parent, or -1: ``Finder(particle_id).rows(parent_id)``.
    """
    rows = np.arange(len(parent))
    root = np.where(primary.astype(bool) | (parent < 0), rows, parent)
    for _ in range(_STEPS):
        root = root[root]
    return root


def subsample_pileup(
    tables: Mapping[str, Mapping[str, Ragged]], collisions: int, random: np.random.Generator
) -> dict[str, dict[str, Ragged]]:
    """Return events with the hard scatter and a random subset of their pileup collisions.

    Noise is kept. Tracks, jets and cells combine several collisions and cannot be subsampled.

    Parameters
    ----------
    tables
        ``particles`` with ``particle_id`` and ``vertex_primary``, alone or with ``tracker_hits`` that have
        ``particle_id``: ``batch.tables``.
    collisions
        Maximum number of pileup collisions to keep in each event.
    random
        Source of random numbers.

    Raises
    ------
    ValueError
        For other tables.
    """
    if other := set(tables) - {"particles", "tracker_hits"}:
        raise ValueError(f"the collisions of {', '.join(sorted(other))} cannot be taken apart")
    particles = tables["particles"]
    number = particles["vertex_primary"]
    is_pileup = number.values > HARD_SCATTER
    pairs, of_particle = np.unique(
        np.stack([number.event, number.values.astype(np.int64)])[:, is_pileup], axis=1, return_inverse=True
    )
    order = np.lexsort((random.random(pairs.shape[1]), pairs[0]))
    first = np.searchsorted(pairs[0][order], pairs[0][order])
    kept_pairs = np.zeros(pairs.shape[1], bool)
    kept_pairs[order] = np.arange(len(order)) - first < collisions
    kept: npt.NDArray[np.bool_] = ~is_pileup
    kept[is_pileup] = kept_pairs[of_particle.ravel()]
    chosen = {"particles": kept}
    if "tracker_hits" in tables:
        row = Finder(particles["particle_id"]).rows(tables["tracker_hits"]["particle_id"])
        chosen["tracker_hits"] = (row < 0) | np.append(kept, False)[row]
    return {
        name: {column: of.where(chosen[name]) for column, of in columns.items()}
        for name, columns in tables.items()
    }
