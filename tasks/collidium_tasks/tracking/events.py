"""The events of a block as NumPy arrays, which share the block's memory where possible."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import Block
from collidium_tasks.tracking.bins import OF_PARTICLES

Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Event:
    """Predictions and truth of one event.

    ``hit_id`` and ``track_id`` have one entry per submitted row. ``true_hit_id``, ``particle`` (0: noise) and
    ``weight`` (None: all hits but noise have weight 1) have one entry per hit of the event.
    ``particle_hits``, ``high_pt``, ``accepted`` and ``bins`` have one entry per particle, at index ``particle
    - 1``.
    """

    event_id: int
    hit_id: Integers
    track_id: Integers
    true_hit_id: Integers
    particle: npt.NDArray[np.uint32]
    weight: npt.NDArray[np.floating[Any]] | None
    particle_hits: npt.NDArray[np.uint32]
    high_pt: npt.NDArray[np.bool_]
    accepted: npt.NDArray[np.bool_]
    bins: Mapping[str, npt.NDArray[np.uint8]]

    @property
    def same_hits(self) -> bool:
        """Whether the rows are all hits of the event, in their order, which is the usual case."""
        return have_equal_ids(self.true_hit_id, self.hit_id)


def have_equal_ids(known: Integers, ids: Integers) -> bool:
    """Return ``np.array_equal`` of ids, of which the ``known`` are not negative.

    NumPy compares integers of equal signedness more than twice as fast as those of different signedness.
    """
    if known.dtype.kind == ids.dtype.kind or known.dtype.itemsize != ids.dtype.itemsize:
        return np.array_equal(known, ids)
    unsigned = f"u{known.dtype.itemsize}"
    if not np.array_equal(known.view(unsigned), ids.view(unsigned)):
        return False
    signed = ids if ids.dtype.kind == "i" else known
    return not len(signed) or int(signed.min()) >= 0


def events_of(block: Block) -> Iterator[Event]:
    """Yield the events of a block that have hits in the truth or rows in the predictions, in order."""
    rows = _Rows(block.predictions)
    hits = _Rows(block.truth["hits"])
    particles = _Rows(block.truth["particles"])
    ids = np.union1d(rows.event_ids(), hits.event_ids())
    row_edges, hit_edges, particle_edges = (table.edges(ids) for table in (rows, hits, particles))
    for number, event_id in enumerate(ids.tolist()):
        row, hit, particle = (
            (int(starts[number]), int(stops[number]))
            for starts, stops in (row_edges, hit_edges, particle_edges)
        )
        yield Event(
            event_id=event_id,
            hit_id=rows["hit_id"].slice(*row),
            track_id=rows["track_id"].slice(*row),
            true_hit_id=hits["hit_id"].slice(*hit),
            particle=hits["particle"].slice(*hit),
            weight=hits["weight"].slice(*hit) if "weight" in hits else None,
            particle_hits=particles["hits"].slice(*particle),
            high_pt=particles["high_pt"].slice(*particle),
            accepted=particles["accepted"].slice(*particle),
            bins={name: particles[name].slice(*particle) for name in OF_PARTICLES},
        )


class _Column:
    """A column without nulls in one or several chunks; a slice is copied only if it spans chunks."""

    def __init__(self, column: pa.ChunkedArray[Any]) -> None:
        self.chunks = [np.asarray(chunk) for chunk in column.chunks if len(chunk)]
        # pa.DataType.to_pandas_dtype would need pandas.
        self.dtype = self.chunks[0].dtype if self.chunks else np.asarray(pa.nulls(0, column.type)).dtype
        lengths = [len(chunk) for chunk in self.chunks]
        self.starts = [sum(lengths[:number]) for number in range(len(lengths))]

    def slice(self, start: int, stop: int) -> npt.NDArray[Any]:
        if start == stop:
            return np.empty(0, self.dtype)
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, stop - 1) - 1
        pieces = [
            self.chunks[number][max(start - self.starts[number], 0) : stop - self.starts[number]]
            for number in range(first, last + 1)
        ]
        return pieces[0] if first == last else np.concatenate(pieces)


class _Rows:
    """A table sorted by event_id."""

    def __init__(self, table: pa.Table) -> None:
        self._columns = {name: _Column(table.column(name)) for name in table.column_names}

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> _Column:
        return self._columns[name]

    def event_ids(self) -> npt.NDArray[np.int64]:
        """Return the distinct events; binary search from one to the next avoids a pass over all rows."""
        found: list[int] = []
        for chunk in self._columns["event_id"].chunks:
            row = 0
            while row < len(chunk):
                found.append(int(chunk[row]))
                row = int(np.searchsorted(chunk, chunk[row], side="right"))
        return np.unique(np.array(found, np.int64))

    def edges(self, ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first row, and the row after the last, of each event; each of shape (len(ids),)."""
        starts = np.zeros(len(ids), np.int64)
        stops = np.zeros(len(ids), np.int64)
        for chunk in self._columns["event_id"].chunks:
            # With equal types, searchsorted does not convert the whole chunk.
            fits = len(ids) == 0 or ids[-1] <= np.iinfo(chunk.dtype).max
            wanted = ids.astype(chunk.dtype) if fits else ids
            starts += np.searchsorted(chunk, wanted, side="left")
            stops += np.searchsorted(chunk, wanted, side="right")
        return starts, stops


#: Index of hit ids that the event does not have.
UNKNOWN = -1


def rows_of_hits(true_hit_id: Integers, hit_id: Integers) -> npt.NDArray[np.int64]:
    """Return the index of each submitted hit among the hits of the event, or UNKNOWN; shape (rows,).

    Ids are integers of any type and are never converted to floats. Ids of the truth are distinct and not
    negative.
    """
    if not len(true_hit_id) or not len(hit_id):
        return np.full(len(hit_id), UNKNOWN, np.int64)
    lowest, highest = int(true_hit_id.min()), int(true_hit_id.max())
    if lowest <= int(hit_id.min()) and int(hit_id.max()) <= highest:
        return _places(true_hit_id, hit_id, lowest, highest - lowest)
    possible = np.flatnonzero((hit_id >= lowest) & (hit_id <= highest))
    places = np.full(len(hit_id), UNKNOWN, np.int64)
    if len(possible):
        places[possible] = _places(true_hit_id, hit_id[possible], lowest, highest - lowest)
    return places


def _places(known: Integers, wanted: Integers, lowest: int, span: int) -> npt.NDArray[np.int64]:
    """Look up ids from the lowest to the highest known id, which differ by ``span``."""
    if span >= 4 * len(known) + 1024:
        return _by_search(known.astype(np.uint64), wanted.astype(np.uint64))
    offsets = (wanted - wanted.dtype.type(lowest)).astype(np.int64)
    if len(known) == span + 1 and bool(np.all(known[1:] > known[:-1])):
        return offsets
    table = np.full(span + 1, UNKNOWN, np.int64)
    table[known - known.dtype.type(lowest)] = np.arange(len(known))
    return table[offsets]


def _by_search(known: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Look up scattered ids in their sorted list."""
    order = np.argsort(known)
    places = order[np.searchsorted(known, wanted, sorter=order)]
    places[known[places] != wanted] = UNKNOWN
    return places
