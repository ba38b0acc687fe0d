"""Writes truth tables: blocks of whole events, the same events in every table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.task import EventRange, UnusableTruth
from collidium.scoring.blocks import TruthBlock
from collidium.scoring.content import as_numpy, rows_below
from collidium.scoring.truth.files import TruthTable, table_path
from collidium.scoring.truth.tables import TableWriter

#: Rows of a block, unless one event has more. Its tables then fit into a processor's cache, nearly.
BLOCK_ROWS: Final = 1024**2


class TruthWriter:
    """Takes prepared truth in any portions and writes blocks; a context manager."""

    def __init__(self, directory: Path, rows_of: str, events: EventRange, block_rows: int) -> None:
        self._directory = directory
        self._rows_of = rows_of
        self._block_rows = block_rows
        self._start, self._stop = events.start, events.stop
        self._waiting: dict[str, list[pa.Table]] = {}
        self._files: dict[str, TableWriter] = {}
        self.blocks: list[TruthBlock] = []

    def __enter__(self) -> TruthWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def add(self, events: EventRange, tables: Mapping[str, pa.Table]) -> None:
        """Add the truth of the next events. Raises UnusableTruth where it is not what a task must prepare."""
        if self._rows_of not in tables:
            raise UnusableTruth(f"the task prepares no table {self._rows_of!r}, which its card names rows_of")
        for name, table in tables.items():
            _check(name, table, events)
            if name not in self._files:
                self._files[name] = TableWriter(table_path(self._directory, name), table.schema)
            self._waiting.setdefault(name, []).append(table.cast(self._files[name].schema))
        if sum(table.num_rows for table in self._waiting[self._rows_of]) > self._block_rows:
            self._flush(complete_below=events.stop, everything=False)

    def finish(self) -> dict[str, TruthTable]:
        """Write what is left and describe the files."""
        self._flush(self._stop, everything=True)
        return {name: file.finish() for name, file in sorted(self._files.items())}

    def content_hashes(self) -> dict[str, str]:
        """A hash of each table's values, whatever the blocks and the encoding."""
        return {name: file.content_hash() for name, file in sorted(self._files.items())}

    def _flush(self, complete_below: int, *, everything: bool) -> None:
        """Write all blocks that are full; the last, which may not be, only with ``everything``."""
        tables = {name: pa.concat_tables(pieces).combine_chunks() for name, pieces in self._waiting.items()}
        events = {name: as_numpy(table.column("event_id")) for name, table in tables.items()}
        edges = _edges(events[self._rows_of], self._start, complete_below, self._block_rows)
        if not everything:
            edges = edges[:-1]
        for stop in edges[1:]:
            block = EventRange(self._start, stop)
            cuts = {name: [rows_below(events[name], edge) for edge in (self._start, stop)] for name in tables}
            for name, (first, last) in cuts.items():
                self._files[name].write(tables[name].slice(first, last - first))
            first, last = cuts[self._rows_of]
            self.blocks.append(TruthBlock(len(self.blocks), block, last - first))
            self._start = stop
        self._waiting = {
            name: [table.slice(rows_below(events[name], self._start))] for name, table in tables.items()
        }


def _edges(events: npt.NDArray[Any], start: int, stop: int, block_rows: int) -> list[int]:
    """First events of blocks, and ``stop``: each block takes events as long as they fit."""
    rows = np.bincount(np.asarray(events, np.int64) - start, minlength=stop - start)
    done = np.concatenate([[0], np.cumsum(rows)])
    edges = [0]
    while edges[-1] < stop - start:
        fit = int(np.searchsorted(done, done[edges[-1]] + block_rows, side="right")) - 1
        edges.append(max(fit, edges[-1] + 1))
    return [start + edge for edge in edges]


def _check(name: str, table: pa.Table, events: EventRange) -> None:
    if "event_id" not in table.column_names or table.schema.field("event_id").type != pa.uint32():
        raise UnusableTruth(f"truth table {name!r} needs a column event_id of type uint32")
    nulls = [column for column in table.column_names if table.column(column).null_count]
    if nulls:
        raise UnusableTruth(f"truth table {name!r} has nulls in {', '.join(nulls)}")
    ids = as_numpy(table.column("event_id"))
    if len(ids) and (np.any(ids[1:] < ids[:-1]) or ids[0] < events.start or ids[-1] >= events.stop):
        raise UnusableTruth(f"truth table {name!r} is not sorted by event, or has other events than {events}")
