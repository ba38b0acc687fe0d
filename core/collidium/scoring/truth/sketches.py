"""Sketches of the events of a truth: some hashes of public rows of each, by which copies are recognised.

A file is sorted by hash within record batches of whole events, and mapped into memory, so that a comparison
costs a binary search for each row of the compared event, however many events there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.row_hashes import HASHED, TABLE_BITS, Hashes, hashes_of, mixed, table_numbers
from collidium.errors import UnusableDataset

#: Maximum number of kept hashes of an event and table.
KEPT: Final = 64
#: An event is a copy of another if it has at least one in so many of the kept hashes of a table.
_SHARED: Final = 4
#: Maximum hashes of a record batch, unless one block of events has more.
_BATCH: Final = 2**20
_SCHEMA: Final = pa.schema(
    # ``kept``: the number of hashes of the same event and table.
    [("hash", pa.uint64()), ("event", pa.uint32()), ("kept", pa.uint8())]
)


def hashed_tables(dataset: Dataset, events: EventRange) -> tuple[str, ...]:
    """Return the tables with all the columns that are hashed, for all ``events``. Blocks."""
    return tuple(name for name in HASHED if _is_hashed(dataset, name, events))


def _is_hashed(dataset: Dataset, name: str, events: EventRange) -> bool:
    try:
        table = dataset.table(name)
        table.refuse_missing(events)
    except UnusableDataset:  # there is none, or it lacks events
        return False
    return set(HASHED[name]) <= set(table.schema.names)


def hashes_of_events(dataset: Dataset, tables: Sequence[str], events: EventRange) -> Iterator[Hashes]:
    """Yield the hashes of the rows of each event, of all tables. Blocks."""
    for block, read in dataset.read(tuple(tables), events):
        found = [hashes_of(name, table) for name, table in read.items()]
        for place in range(len(block)):
            yield np.concatenate([hashes[edges[place] : edges[place + 1]] for hashes, edges in found])


def write(path: Path, dataset: Dataset, tables: Sequence[str], events: EventRange, secret: str) -> None:
    """Write the sketches of a dataset's events. Blocks.

    Which rows are kept depends on ``secret``, so that they cannot be left out of a copy on purpose.
    Raises UnusableDataset if a table lacks an event.
    """
    salt = np.frombuffer(hashlib.sha256(secret.encode()).digest()[:8], "<u8")[0]
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
        waiting: list[tuple[Hashes, npt.NDArray[np.uint32], npt.NDArray[np.uint8]]] = []
        for _, read in dataset.read(tuple(tables), events):
            waiting += _sketched(read, salt)
            if sum(len(hashes) for hashes, _, _ in waiting) >= _BATCH:
                writer.write_batch(_batch(waiting))
                waiting = []
        if waiting:
            writer.write_batch(_batch(waiting))


def _sketched(
    tables: Mapping[str, pa.Table], salt: np.uint64
) -> Iterator[tuple[Hashes, npt.NDArray[np.uint32], npt.NDArray[np.uint8]]]:
    for name, table in tables.items():
        hashes, edges = hashes_of(name, table)
        ids = np.asarray(table.column("event_id")).astype(np.uint32)
        for event, start, stop in zip(ids, edges[:-1], edges[1:], strict=True):
            own = np.unique(hashes[start:stop])
            if len(own) > KEPT:
                own = own[np.argpartition(mixed(own ^ salt), KEPT)[:KEPT]]
            yield own, np.full(len(own), event, np.uint32), np.full(len(own), len(own), np.uint8)


def _batch(waiting: Sequence[tuple[Hashes, npt.NDArray[np.uint32], npt.NDArray[np.uint8]]]) -> pa.RecordBatch:
    hashes, events, kept = (np.concatenate(column) for column in zip(*waiting, strict=True))
    order = np.argsort(hashes, kind="stable")
    return pa.record_batch([pa.array(one[order]) for one in (hashes, events, kept)], schema=_SCHEMA)


@dataclass(frozen=True, slots=True)
class Sketches:
    """The sketches in a file, which is mapped into memory."""

    _batches: tuple[tuple[Hashes, npt.NDArray[np.uint32], npt.NDArray[np.uint8]], ...]

    @classmethod
    def open(cls, path: Path) -> Sketches:
        """Map a file that :func:`write` wrote."""
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        mapped = [tuple(column.to_numpy() for column in batch.columns) for batch in batches]
        return cls(tuple((hashes, events, kept) for hashes, events, kept in mapped))

    def has(self, hashes: Hashes) -> bool:
        """Return whether any event of these sketches is the event with these hashes of rows. Blocks."""
        rows = np.unique(hashes)
        return any(_shares(rows, *batch) for batch in self._batches)


def _shares(
    rows: Hashes, hashes: Hashes, events: npt.NDArray[np.uint32], kept: npt.NDArray[np.uint8]
) -> bool:
    first, stop = (np.searchsorted(hashes, rows, side) for side in ("left", "right"))
    counts = stop - first
    # All places of each row's hash: consecutive ones from its first.
    places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    keys = (events[places].astype(np.uint64) << np.uint64(TABLE_BITS)) | table_numbers(hashes[places])
    _, index, shared = np.unique(keys, return_index=True, return_counts=True)
    return bool(np.any(shared * _SHARED >= kept[places][index].astype(np.int64)))
