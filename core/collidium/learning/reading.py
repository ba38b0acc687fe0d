"""Reads columns of several tables as batches, by row groups of the largest table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets.reading.dataset import refuse_missing
from collidium.datasets.reading.shards import EventTable
from collidium.errors import UnusableDataset
from collidium.learning.batch import Batch, Pool
from collidium.physics.ragged import Integers, Ragged, from_arrow

_END: Final = 2**63 - 1


class ColumnReader:
    """Reads some columns of a table by ranges of events."""

    def __init__(self, table: EventTable, columns: Sequence[str] | None) -> None:
        self.table = table
        self.columns = [
            name for name in (table.columns if columns is None else columns) if name != "event_id"
        ]
        self.bytes_per_event = table.decoded_bytes(self.columns)
        #: The range of events and content of the last row groups, which the next range often needs again.
        self._cached: tuple[int, int, Batch] | None = None

    def read(self, ids: Integers, start: int, stop: int) -> Mapping[str, Ragged]:
        """Read the events ``ids``, which are in the range; missing ones have empty lists."""
        cached = self._cached
        if cached is None or start < cached[0] or stop > cached[1]:
            edges = np.concatenate([[0], self.table.group_starts[1:], [_END]])
            low = int(edges[np.searchsorted(edges, start, side="right") - 1])
            high = int(edges[np.searchsorted(edges, stop)])
            cached = self._cached = low, high, self._load(EventRange(low, high))
        known = cached[2]
        place = np.searchsorted(known.event_id, ids)
        found = place < len(known)
        found[found] = known.event_id[place[found]] == ids[found]
        taken = Pool([known]).take(place[found]).tables[self.table.name] if found.any() else None
        if taken is not None and found.all():
            return taken
        columns = {}
        for name, of in known.tables[self.table.name].items():
            own = of[:0] if taken is None else taken[name]
            lengths = np.zeros(len(ids), np.int64)
            lengths[found] = own.lengths
            columns[name] = Ragged(own.values, np.concatenate([[0], np.cumsum(lengths)]))
        return columns

    def _load(self, events: EventRange) -> Batch:
        rows = self.table.load(events, self.columns, use_threads=False)
        return Batch(
            np.asarray(rows.column("event_id")).astype(np.int64), {self.table.name: self._lists(rows)}
        )

    def _lists(self, rows: pa.Table) -> dict[str, Ragged]:
        lists: dict[str, Ragged] = {}
        for name in self.columns:
            try:
                column = from_arrow(rows.column(name))
            except (ValueError, pa.ArrowException) as error:
                raise UnusableDataset(f"table {self.table.name}, column {name}: {error}") from error
            if not isinstance(column, Ragged):  # one value per event
                column = Ragged(column, np.arange(len(column) + 1))
            first = next(iter(lists.values()), column)
            if not np.array_equal(first.offsets, column.offsets):
                raise UnusableDataset(f"table {self.table.name}: column {name} has lists of other lengths")
            lists[name] = Ragged(column.values, first.offsets)
        return lists


class JoinedTables:
    """The events of several tables, in units that are decoded at once: row groups of the largest table."""

    def __init__(self, tables: Sequence[ColumnReader], events: EventRange | None) -> None:
        self._tables = tables
        first = tables[0].table
        ids = first.event_ids
        if events is not None:
            refuse_missing(first, events)
            ids = ids[slice(*np.searchsorted(ids, [events.start, events.stop]))]
        largest = max(tables, key=lambda table: table.bytes_per_event)
        edges = np.unique(np.concatenate([[0], largest.table.group_starts[1:], [_END]]))
        places = np.searchsorted(ids, edges)
        filled = np.flatnonzero(np.diff(places))
        self.ids = ids
        self.columns = {table.table.name: table.columns for table in tables}
        self.bytes_per_event = sum(table.bytes_per_event for table in tables)
        self._first, self._last = places[filled], places[filled + 1]
        self.counts = self._last - self._first

    def unit(self, number: int) -> Batch:
        """Decode all events of a unit."""
        ids = self.ids[self._first[number] : self._last[number]]
        start, stop = int(ids[0]), int(ids[-1]) + 1
        return Batch(ids, {table.table.name: table.read(ids, start, stop) for table in self._tables})
