"""A table of truth on disk: Arrow IPC, which is mapped into memory rather than decoded.

A file has one record batch of one row for each block of events. Each cell is a list: the values of a column
in the block, in one of the types that the column may have there. So each block takes as few bytes as its
values allow:

- integers in the narrowest type that holds them; the lists of the other types are empty;
- ``event_id`` once for each event, with the number of its rows;
- a column that numbers the rows of each event from 0 is not stored: all its lists are empty.

To decode parquet took a fifth of the time of scoring.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import nested, positions_in_event
from collidium.files.durable import sha256_of
from collidium.scoring.content import as_numpy

#: Minimum mean number of rows per event in a block for ``event_id`` to be stored once per event.
LONG_EVENTS: Final = 1024

_ROWS: Final = pa.field("event_id/rows", pa.list_(pa.uint32()))
_NARROW: Final = (pa.uint8(), pa.uint16(), pa.uint32())


@dataclass(frozen=True, slots=True)
class TruthTable:
    """A file of truth."""

    sha256: str
    rows: int
    bytes: int


class TableWriter:
    """Writes a table of truth, block by block; dictionaries are decoded."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema = pa.schema((field.name, _plain(field.type)) for field in schema)
        self._path = path
        self._rows = 0
        self._hashes = {name: hashlib.sha256() for name in schema.names}
        cells = [(column.name, kind) for column in self.schema for kind in _types(column.type)]
        fields: list[pa.Field[Any]] = [pa.field(f"{name}/{kind}", pa.list_(kind)) for name, kind in cells]
        fields.insert(0, _ROWS)
        self._stored = pa.schema(fields)
        self._stack = ExitStack()
        file = self._stack.enter_context(pa.OSFile(str(path), "wb"))
        self._writer = self._stack.enter_context(pa.ipc.new_file(file, self._stored))

    def write(self, table: pa.Table) -> None:
        """Write the rows of a block, also if there are none: the batch has the block's number."""
        cells: dict[str, pa.Array[Any]] = {
            field.name: pa.array([], field.type.value_type) for field in self._stored
        }
        events, rows = np.unique(as_numpy(table.column("event_id")), return_counts=True)
        long = len(events) * LONG_EVENTS <= table.num_rows
        if long:
            cells[_ROWS.name] = pa.array(rows, pa.uint32())
        for column in self.schema:
            values: pa.Array[Any] = table.column(column.name).combine_chunks()
            if long and column.name == "event_id":
                values = pa.array(events, column.type)
            elif long and _are_positions(values, rows):
                continue
            kind = _narrowest(values)
            cells[f"{column.name}/{kind}"] = values.cast(kind)
        lists = [nested([len(cell)], cell) for cell in cells.values()]
        self._writer.write_batch(pa.record_batch(lists, schema=self._stored))
        self._rows += table.num_rows
        for name, digest in self._hashes.items():
            digest.update(_bytes(table.column(name)))

    def close(self) -> None:
        self._stack.close()

    def finish(self) -> TruthTable:
        """Close the file and describe it."""
        self.close()
        return TruthTable(sha256_of(self._path), self._rows, self._path.stat().st_size)

    def content_hash(self) -> str:
        """A hash of the values, independent of how they are stored."""
        columns = [(name, str(self.schema.field(name).type)) for name in self.schema.names]
        return hashlib.sha256(
            repr([(*column, self._hashes[column[0]].hexdigest()) for column in columns]).encode()
        ).hexdigest()


class TableReader:
    """Reads a table of truth; a context manager."""

    def __init__(self, path: Path) -> None:
        self._stack = ExitStack()
        file = self._stack.enter_context(pa.memory_map(str(path)))
        self._file = self._stack.enter_context(pa.ipc.open_file(file))
        #: The cells of each column; the last has its own type.
        self._cells: dict[str, list[int]] = {}
        for number, field in enumerate(self._file.schema):
            if number:
                self._cells.setdefault(field.name.rpartition("/")[0], []).append(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, block: int) -> pa.Table:
        """The rows of a block; only values that are not stored in the column's own type are copied."""
        batch = self._file.get_batch(block)
        lists: list[pa.Array[Any]] = [cast("pa.ListArray[Any]", cell).values for cell in batch.columns]
        rows = np.asarray(lists[0])
        columns: dict[str, pa.Array[Any] | pa.ChunkedArray[Any]] = {}
        for name, cells in self._cells.items():
            kind = lists[cells[-1]].type
            values = next((lists[cell] for cell in cells if len(lists[cell])), lists[cells[-1]])
            if len(rows) > len(values) == 0:
                columns[name] = _positions(rows, kind)
            elif name == "event_id" and len(rows):
                columns[name] = pa.array(np.repeat(np.asarray(values.cast(kind)), rows))
            else:
                columns[name] = values.cast(kind)
        return pa.table(columns)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if isinstance(kind, pa.DictionaryType) else kind


def _types(kind: pa.DataType) -> list[pa.DataType]:
    """The types that a column of this type may be stored in, the narrowest first."""
    if not pa.types.is_integer(kind):
        return [kind]
    return [*(narrow for narrow in _NARROW if narrow.bit_width < kind.bit_width), kind]


def _narrowest(values: pa.Array[Any]) -> pa.DataType:
    *narrow, own = _types(values.type)
    if not narrow or not len(values):
        return own
    numbers = np.asarray(values)
    lowest, highest = int(numbers.min()), int(numbers.max())
    return next((kind for kind in narrow if 0 <= lowest <= highest < 1 << kind.bit_width), own)


def _are_positions(values: pa.Array[Any], rows: npt.NDArray[np.int64]) -> bool:
    return pa.types.is_integer(values.type) and np.array_equal(values, positions_in_event(rows))


def _positions(rows: npt.NDArray[np.uint32], kind: pa.DataType) -> pa.ChunkedArray[Any]:
    """As :func:`positions_in_event`, one chunk per event; all share the memory of the longest."""
    longest = pa.array(np.arange(rows.max())).cast(kind)
    return pa.chunked_array([longest.slice(0, count) for count in rows.tolist()])


def _bytes(column: pa.ChunkedArray[Any]) -> bytes:
    """The values of a column as bytes, independent of its layout in memory."""
    if pa.types.is_primitive(column.type):
        return np.asarray(column).tobytes()
    return repr(column.to_pylist()).encode()
