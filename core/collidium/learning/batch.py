"""Batches of events as ragged or padded arrays: read from tables, converted to frameworks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets.reading.shards import EventTable
from collidium.errors import InvalidInput, UnusableDataset
from collidium.physics.ragged import ALIGNMENT, Array, Integers, Ragged, from_arrow, joined

#: A dict of arrays, or of such dicts.
Tree = dict[str, Any]

#: Kinds of NumPy's types.
_NUMBERS: Final = "biufc"
#: Above all event ids.
_END: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Ragged columns of some events.

    ``batch["tracks"]`` is a table, and ``batch["tracks"]["d0"]`` or ``batch["tracks.d0"]`` a column. With
    only one table, so is ``batch["d0"]``. All columns of a table have the same offsets.

    Parameters
    ----------
    event_id : numpy.ndarray of int64, shape (events,)
        The events.
    tables : mapping of str to mapping of str to Ragged
        The columns by table and name, with one list per event.
    """

    event_id: Integers
    tables: Mapping[str, Mapping[str, Ragged]]

    def __len__(self) -> int:
        return len(self.event_id)

    def __getitem__(self, name: str) -> Any:
        if name in self.tables:
            return self.tables[name]
        table, _, column = name.rpartition(".")
        if not table and len(self.tables) == 1:
            (table,) = self.tables
        if column not in self.tables.get(table, {}):
            raise KeyError(name)
        return self.tables[table][column]

    def padded(self, length: int | Mapping[str, int], fill: float = 0) -> Padded:
        """Pad or cut all lists to the same length.

        Parameters
        ----------
        length
            Length for all tables, or by table.
        fill
            Padding value.

        Raises
        ------
        InvalidInput
            If a column has lists of lists, or holds no numbers.
        """
        lengths = length if isinstance(length, Mapping) else dict.fromkeys(self.tables, length)
        tables, cut = {}, {}
        for name, columns in self.tables.items():
            if nested := [column for column, of in columns.items() if isinstance(of.values, Ragged)]:
                raise InvalidInput(f"{name}: {', '.join(nested)} hold lists of lists, which cannot be padded")
            for column, of in columns.items():
                _require_numbers(f"{name}.{column}", of.values)
            sizes = next(iter(columns.values())).lengths if columns else np.zeros(len(self), np.int64)
            tables[name] = {
                "mask": np.arange(lengths[name]) < sizes[:, None],
                **{column: of.padded(lengths[name], fill) for column, of in columns.items()},
            }
            cut[name] = int(np.maximum(sizes - lengths[name], 0).sum())
        return Padded(self.event_id, tables, cut)

    def arrays(self) -> Tree:
        """Return ``event_id``, and by table ``offsets`` and the values of each column, without a copy."""
        return {
            "event_id": self.event_id,
            **{
                name: {"offsets": next(iter(columns.values())).offsets, **_values(columns)} if columns else {}
                for name, columns in self.tables.items()
            },
        }

    def to_torch(self) -> Tree:
        """Return :meth:`arrays` as tensors that share the arrays' memory. Needs torch.

        Raises
        ------
        InvalidInput
            If a column holds no numbers.
        """
        return _mapped(_torch(), self.arrays())

    def to_jax(self) -> Tree:
        """Return :meth:`arrays` as JAX arrays, without a copy if memory is aligned. Needs jax.

        Raises
        ------
        InvalidInput
            If integers need 64 bits, as hosted particle ids do, and ``jax_enable_x64`` is off, or if a column
            holds no numbers.
        """
        return _mapped(_jax(), self.arrays())

    def to_awkward(self) -> Any:
        """Return an array of events, with a list of records for each table, without a copy. Needs awkward.

        Raises
        ------
        InvalidInput
            If a column holds neither numbers nor times.
        """
        import awkward

        def content(name: str, of: Any) -> Any:
            if not isinstance(of, Ragged):
                _require_numbers(name, of, _NUMBERS + "mM")
                return awkward.contents.NumpyArray(of)
            return awkward.contents.ListOffsetArray(
                awkward.index.Index64(of.offsets), content(name, of.values)
            )

        def lists(columns: Mapping[str, Ragged]) -> Any:
            names = list(columns)
            contents = [content(name, columns[name].values) for name in names]
            records = awkward.contents.RecordArray(contents, names)
            return awkward.contents.ListOffsetArray(
                awkward.index.Index64(next(iter(columns.values())).offsets), records
            )

        made = {"event_id": content("event_id", self.event_id)}
        made |= {name: lists(columns) for name, columns in self.tables.items() if columns}
        return awkward.Array(awkward.contents.RecordArray(list(made.values()), list(made)))


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """Padded columns of some events.

    Parameters
    ----------
    event_id : numpy.ndarray of int64, shape (events,)
        The events.
    tables : mapping of str to mapping of str to numpy.ndarray, shape (events, length)
        The columns by table and name, and ``mask``, which is False for padding.
    cut : mapping of str to int
        Number of rows of each table that were cut off.
    """

    event_id: Integers
    tables: Mapping[str, Mapping[str, Array]]
    cut: Mapping[str, int]

    def arrays(self) -> Tree:
        """Return ``event_id``, and by table ``mask`` and each column."""
        return {"event_id": self.event_id, **{name: dict(columns) for name, columns in self.tables.items()}}

    def to_torch(self) -> Tree:
        """As :meth:`Batch.to_torch`."""
        return _mapped(_torch(), self.arrays())

    def to_jax(self) -> Tree:
        """As :meth:`Batch.to_jax`."""
        return _mapped(_jax(), self.arrays())


def _values(columns: Mapping[str, Ragged]) -> Tree:
    return {
        name: {"offsets": of.values.offsets, "values": of.values.values}
        if isinstance(of.values, Ragged)
        else of.values
        for name, of in columns.items()
    }


def _mapped(convert: Callable[[str, Array], Any], tree: Tree) -> Tree:
    mapped = {}
    for name, of in tree.items():
        if isinstance(of, dict):
            mapped[name] = _mapped(convert, of)
        else:
            _require_numbers(name, of)
            mapped[name] = convert(name, of)
    return mapped


def _require_numbers(name: str, values: Array, kinds: str = _NUMBERS) -> None:
    if values.dtype.kind not in kinds:
        raise InvalidInput(f"column {name} holds no numbers: leave it out")


def _torch() -> Callable[[str, Array], Any]:
    # Type checkers would resolve an import statement to this package's torch.py if torch is not installed.
    torch: Any = import_module("torch")

    def convert(_: str, array: Array) -> Any:
        with warnings.catch_warnings():
            # Memory of Arrow is read-only, but only this batch uses these values.
            warnings.filterwarnings("ignore", message=".*not writable")
            return torch.from_numpy(array)

    return convert


def _jax() -> Callable[[str, Array], Any]:
    import jax  # pyright: ignore[reportMissingImports]  # an extra

    def convert(name: str, array: Array) -> Any:
        kind = jax.dtypes.canonicalize_dtype(array.dtype)
        if kind != array.dtype and kind.kind in "iu" and len(array) and _beyond(array, np.iinfo(kind)):
            raise InvalidInput(f"column {name} needs 64 bits: set jax_enable_x64, or leave it out")
        array = array.astype(kind, copy=False)
        if array.flags.writeable and array.size and not array.ctypes.data % ALIGNMENT:
            return jax.dlpack.from_dlpack(array)
        return jax.numpy.asarray(array)

    return convert


def _beyond(array: Array, limits: np.iinfo[Any]) -> bool:
    return bool(array.min() < limits.min or array.max() > limits.max)


class Pool:
    """Decoded events from which batches are taken.

    Parameters
    ----------
    parts
        Batches with the same tables and columns, whose events are numbered consecutively.
    """

    def __init__(self, parts: Sequence[Batch]) -> None:
        self.part = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self.event_id = np.concatenate([part.event_id for part in parts])
        self._columns = {
            table: {name: [part.tables[table][name].values for part in parts] for name in columns}
            for table, columns in parts[0].tables.items()
        }
        # A part has one offset more than events.
        self._offsets = {
            table: np.concatenate([next(iter(part.tables[table].values())).offsets for part in parts])
            for table in self._columns
        }

    def take(self, events: Integers) -> Batch:
        """Return some of the events. Values are copied unless they are contiguous."""
        part = self.part[events]
        cuts = np.flatnonzero((np.diff(events) != 1) | (np.diff(part) != 0))
        begins, ends = np.concatenate([[0], cuts + 1]), np.concatenate([cuts, [len(events) - 1]])
        tables = {}
        for table, columns in self._columns.items():
            edges = self._offsets[table]
            place = events + part
            starts, stops = edges[place], edges[place + 1]
            offsets = np.concatenate([[0], np.cumsum(stops - starts)])
            runs = list(
                zip(part[begins].tolist(), starts[begins].tolist(), stops[ends].tolist(), strict=True)
            )
            tables[table] = {
                name: Ragged(joined([values[of][start:stop] for of, start, stop in runs]), offsets)
                for name, values in columns.items()
            }
        return Batch(self.event_id[events], tables)


def concatenate(batches: Iterable[Batch]) -> Batch:
    """Return the events of several batches as one batch."""
    pool = Pool(list(batches))
    return pool.take(np.arange(len(pool.event_id)))


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
            first.refuse_missing(events)
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
