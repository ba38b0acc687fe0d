"""Features of an event from hits, deposits and tracks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import list_lengths
from collidium.contracts.task import Tables

Floats = npt.NDArray[np.float64]

#: A track that passes the beams at more than this distance, in mm, comes from something that lived long.
DISPLACED: Final = 1.0

#: The columns of :func:`features`; energies and momenta in GeV, lengths in mm.
NAMES: Final = (
    "hits",
    "tracks",
    "track_pt",
    "hardest_track_pt",
    "displaced_tracks",
    "largest_d0",
    "energy",
    "hardest_deposit",
    "transverse_energy",
    "missing_transverse_energy",
)


def features(tables: Tables) -> Floats:
    """Shape (events, features), in the order of NAMES; each is ln(1 + value), as all have long tails."""
    hits = list_lengths(tables["tracker_hits"], "x").astype(np.float64)
    return np.log1p(
        np.stack([hits, *_of_tracks(tables["tracks"]), *_of_deposits(tables["calo_hits"])], axis=1)
    )


def energies(table: pa.Table) -> Floats:
    """The energy that calorimeters saw of each event, in GeV, shape (events,)."""
    lists = _Lists(table, "total_energy")
    return lists.sums(lists.of("total_energy"))


def _of_tracks(table: pa.Table) -> list[Floats]:
    lists = _Lists(table, "d0")
    d0, theta, qop = (lists.of(name) for name in ("d0", "theta", "qop"))
    with np.errstate(divide="ignore"):
        pt = np.abs(np.sin(theta) / qop)
    pt[~np.isfinite(pt)] = 0.0
    far = np.abs(d0)
    counts = lists.sums(np.ones(len(pt)))
    displaced = lists.sums((far > DISPLACED).astype(np.float64))
    return [counts, lists.sums(pt), lists.largest(pt), displaced, lists.largest(far)]


def _of_deposits(table: pa.Table) -> list[Floats]:
    lists = _Lists(table, "total_energy")
    energy, x, y, z = (lists.of(name) for name in ("total_energy", "x", "y", "z"))
    distance = np.sqrt(x * x + y * y + z * z)
    transverse = energy / np.where(distance > 0, distance, 1.0)
    missing = np.hypot(lists.sums(transverse * x), lists.sums(transverse * y))
    return [
        lists.sums(energy),
        lists.largest(energy),
        lists.sums(transverse * np.hypot(x, y)),
        missing,
    ]


class _Lists:
    """Lists of events as one array, and what is counted of each event's part."""

    def __init__(self, table: pa.Table, column: str) -> None:
        """``column`` is one of those whose lists are asked for; all are of equal lengths."""
        self._table = table
        self._events = table.num_rows
        self._event = np.repeat(np.arange(self._events), list_lengths(table, column))

    def of(self, column: str) -> Floats:
        """All elements, event by event."""
        flat: Any = pc.list_flatten(self._table.column(column))
        return np.asarray(flat, dtype=np.float64)

    def sums(self, values: Floats) -> Floats:
        return np.bincount(self._event, values, self._events).astype(np.float64)

    def largest(self, values: Floats) -> Floats:
        """Of numbers that are not negative; 0 of none."""
        largest = np.zeros(self._events)
        np.maximum.at(largest, self._event, values)
        return largest
