"""Writes truth tables: row groups of whole events, the same events in every table, fast to decode."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.task import EventRange, UnusableTruth
from collidium.scoring.blocks import TruthBlock
from collidium.scoring.content import as_numpy, rows_below
from collidium.scoring.truth.files import TruthTable, file_sha256, table_path

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
        self._files: dict[str, _TableFile] = {}
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
                self._files[name] = _TableFile(table_path(self._directory, name), table.schema)
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


class _TableFile:
    """One truth table on its way to the disk."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema.remove_metadata()
        self._rows = 0
        self._hashes = {name: hashlib.sha256() for name in schema.names}
        # Measured: integers unpack fastest from deltas, an event's id, repeated, from a dictionary; both
        # without compression, which costs more time than it saves space on top of them.
        integers = [field.name for field in schema if pa.types.is_integer(field.type)]
        self._writer = pq.ParquetWriter(
            path,
            self.schema,
            compression="none",
            use_dictionary=["event_id"],  # type: ignore[arg-type]  # the stubs know booleans only
            column_encoding={name: "DELTA_BINARY_PACKED" for name in integers if name != "event_id"},
            write_statistics=["event_id"],
        )

    def write(self, table: pa.Table) -> None:
        """Write one row group, also an empty one: its number is that of the block."""
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._rows += table.num_rows
        for name, digest in self._hashes.items():
            digest.update(_bytes(table.column(name)))

    def close(self) -> None:
        self._writer.close()

    def finish(self) -> TruthTable:
        self.close()
        return TruthTable(file_sha256(self.path), self._rows, self.path.stat().st_size)

    def content_hash(self) -> str:
        columns = [(name, str(self.schema.field(name).type)) for name in self.schema.names]
        return hashlib.sha256(
            repr([(*column, self._hashes[column[0]].hexdigest()) for column in columns]).encode()
        ).hexdigest()


def _bytes(column: pa.ChunkedArray[Any]) -> bytes:
    """The values of a column as bytes, equal however it lies in memory."""
    if pa.types.is_primitive(column.type):
        return np.asarray(column).tobytes()
    return repr(column.to_pylist()).encode()
