"""Reads a table of a dataset by blocks of events, in bounded memory.

One row is one event. Event ids must be unique and ascending within a shard; shards may come in any order and
may interleave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collidium.contracts.task import NOTE, EventRange
from collidium.datasets.reading.types import EventIds, as_schema, checked_ids, unified, why_unreadable
from collidium.datasets.schemas import canonical
from collidium.errors import UnusableDataset

#: Uncompressed bytes of one table that are decoded at once, by its footer; up to ten times as much in memory.
BATCH_BYTES: Final = 32 * 1024**2
#: Maximum rows that are decoded at once: a few bytes can encode a billion equal values.
BATCH_ROWS: Final = 64 * 1024

#: Bytes of a value in memory by its physical type; others take 8.
_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4}


class OpenableShard(Protocol):
    """A remote parquet file."""

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        ...

    def open(self) -> pa.NativeFile:
        """Open the file for random access."""
        ...


@contextmanager
def parquet_errors(name: str) -> Iterator[None]:
    """Raise UnusableDataset for an invalid parquet file ``name``."""
    try:
        yield
    except MemoryError:  # pyarrow's is an ArrowException, too
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnusableDataset(f"{name}: {why_unreadable(error)}") from error


class EventTable:
    """A table of a dataset. Only its event ids are held in memory.

    A column has one type in all shards (``types.unified``), and is null in shards without it.

    Parameters
    ----------
    name
        The table's name.
    shards
        Its parquet files, in any order. Their event ids are read at once.

    Raises
    ------
    UnusableDataset
        For an invalid file, event ids that are not ascending and unique, and columns without a common type.

    Attributes
    ----------
    event_ids
        The ids of all events, ascending, shape (events,).
    """

    def __init__(self, name: str, shards: Sequence[Path | OpenableShard]) -> None:
        self.name = name
        self._shards = [_Shard(name, path) for path in shards]
        self.event_ids: EventIds = np.sort(np.concatenate([shard.event_ids for shard in self._shards]))
        self._check_unique()
        #: The columns of all shards by their canonical names, in the order of the first.
        self.schema: pa.Schema = unified(name, {shard.source.name: shard.schema for shard in self._shards})

    @property
    def bytes_per_event(self) -> float:
        """Mean uncompressed size of an event in bytes."""
        return sum(shard.bytes for shard in self._shards) / max(len(self.event_ids), 1)

    @property
    def group_starts(self) -> EventIds:
        """The first event of each row group, ascending, shape (groups,)."""
        return np.sort(np.concatenate([shard.event_ids[shard.filled] for shard in self._shards]))

    def decoded_bytes(self, columns: Sequence[str]) -> float:
        """Estimate the memory that columns take. Integers of less than 32 bits are overestimated.

        Parameters
        ----------
        columns : sequence of str

        Returns
        -------
        float
            Mean bytes per event.
        """
        wanted = self._wanted(columns)
        return sum(shard.decoded_bytes(wanted) for shard in self._shards) / max(len(self.event_ids), 1)

    def refuse_missing(self, events: EventRange) -> None:
        """Raise UnusableDataset, with count and examples, if the table lacks events of the range."""
        first, stop = np.searchsorted(self.event_ids, [events.start, events.stop])
        is_missing = np.ones(len(events), np.bool_)
        is_missing[self.event_ids[first:stop] - events.start] = False
        missing = np.flatnonzero(is_missing) + events.start
        if len(missing):
            examples = ", ".join(map(str, missing[:5].tolist()))
            there = f"{self.event_ids[0]} to {self.event_ids[-1]}" if len(self.event_ids) else "none"
            detail = (
                f"table {self.name} lacks {len(missing)} of the {len(events)} events {events}, "
                f"for example {examples} (available events: {there})"
            )
            none = len(missing) == len(events)
            raise UnusableDataset(detail, errors=[{"field": "events", "detail": detail}] if none else ())

    def read(self, blocks: Sequence[EventRange], *, batch_bytes: int = BATCH_BYTES) -> Iterator[pa.Table]:
        """Read the rows of each block, sorted by event.

        Parameters
        ----------
        blocks
            Ascending ranges of events that do not overlap.
        batch_bytes
            Uncompressed bytes of each shard that are decoded at once.

        Yields
        ------
        pyarrow.Table
            The rows of a block, with canonical column names.
        """
        if not blocks:
            return
        span = EventRange(blocks[0].start, blocks[-1].stop)
        shards = [shard for shard in self._shards if shard.touches(span)]
        readers = [_Reader(shard, span, self.schema, batch_bytes) for shard in shards]
        for block in blocks:
            parts = [reader.take(block.stop) for reader in readers if reader.shard.touches(block)]
            yield _in_order(parts) if parts else self.schema.empty_table()

    def load(
        self,
        events: EventRange | None = None,
        columns: Sequence[str] | None = None,
        *,
        use_threads: bool = True,
    ) -> pa.Table:
        """Load rows into memory, sorted by event. Only the row groups that contain them are read.

        Parameters
        ----------
        events
            The range to load; default: all events.
        columns
            Canonical names; default: all columns. ``event_id`` always comes first.
        use_threads
            Whether columns are decoded in parallel.

        Returns
        -------
        pyarrow.Table
            One row per event.

        Raises
        ------
        UnusableDataset
            For an unknown column.
        """
        fields = [self.schema.field(name) for name in self._wanted(columns)]
        wanted = pa.schema(fields).with_metadata(self.schema.metadata or {})
        shards = [shard for shard in self._shards if events is None or shard.touches(events)]
        parts = [shard.rows(events, wanted, use_threads) for shard in shards]
        return _in_order(parts or [wanted.empty_table()])

    @property
    def columns(self) -> list[str]:
        """Canonical names, in the order of the files."""
        return self.schema.names

    def _wanted(self, columns: Sequence[str] | None) -> list[str]:
        if columns is None:
            return self.columns
        absent = [name for name in columns if name not in self.columns]
        if absent:
            raise UnusableDataset(
                f"table {self.name} has no column {', '.join(absent)}; there are: {', '.join(self.columns)}"
            )
        return list(dict.fromkeys(["event_id", *columns]))

    def _check_unique(self) -> None:
        repeated = np.unique(self.event_ids[1:][self.event_ids[1:] == self.event_ids[:-1]])
        if len(repeated):
            holders = [shard.source.name for shard in self._shards if repeated[0] in shard.event_ids]
            raise UnusableDataset(
                f"table {self.name}: {len(repeated)} events occur twice, for example event "
                f"{repeated[0]} in {' and '.join(holders)}"
            )


class _Shard:
    """A parquet file with ascending event ids."""

    def __init__(self, table: str, source: Path | OpenableShard) -> None:
        self.source = source
        with parquet_errors(source.name), _opened(source) as file:
            stored = file.schema_arrow
            if len(set(stored.names)) != len(stored.names):
                raise UnusableDataset(f"{source.name}: has a column twice")
            self.columns = canonical(table, stored.names)
            if "event_id" not in self.columns:
                raise UnusableDataset(f"{source.name}: has no column event_id")
            notes: dict[bytes | str, bytes | str] = {
                k: v for k, v in (stored.metadata or {}).items() if k.startswith(NOTE.encode())
            }
            self.schema = pa.schema(
                [stored.field(old).with_name(new) for new, old in self.columns.items()], metadata=notes
            )
            self._footer = file.metadata
            groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
            self.edges = np.cumsum([0, *(group.num_rows for group in groups)])
            try:
                self.event_ids = _event_ids(source, file)
            except ValueError as error:
                raise UnusableDataset(f"{source.name}: {error}") from error
        if len(self.event_ids) != self.edges[-1]:
            raise UnusableDataset(
                f"{source.name}: has {len(self.event_ids)} rows, not the {self.edges[-1]} of its footer"
            )
        self.bytes = sum(group.total_byte_size for group in groups)

    def touches(self, events: EventRange) -> bool:
        """Whether the shard contains events of the range."""
        first, last = np.searchsorted(self.event_ids, [events.start, events.stop])
        return bool(first < last)

    @property
    def filled(self) -> EventIds:
        """The first row of each row group that is not empty."""
        return self.edges[:-1][np.diff(self.edges) > 0]

    def decoded_bytes(self, names: Sequence[str]) -> int:
        """Bytes that columns take in memory, by number and physical type of their values."""
        stored = {self.columns[name] for name in names if name in self.columns}
        groups = (self._footer.row_group(number) for number in range(self._footer.num_row_groups))
        chunks = (group.column(number) for group in groups for number in range(group.num_columns))
        return sum(
            chunk.num_values * _WIDTHS.get(chunk.physical_type, 8)
            for chunk in chunks
            if chunk.path_in_schema.partition(".")[0] in stored
        )

    def as_schema(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """Convert decoded rows with stored names to the columns and types of a table."""
        named = {new: rows.column(old) for new, old in self.columns.items() if old in rows.column_names}
        return as_schema(pa.table(named), schema, self.source.name)

    def rows(self, events: EventRange | None, schema: pa.Schema, use_threads: bool = True) -> pa.Table:
        """Decode the rows of some events, or of all, at once."""
        first, last = 0, len(self.event_ids)
        if events is not None:
            first, last = (int(n) for n in np.searchsorted(self.event_ids, [events.start, events.stop]))
        begin = max(int(np.searchsorted(self.edges, first, side="right")) - 1, 0)
        end = int(np.searchsorted(self.edges, last, side="left"))
        stored = [self.columns[name] for name in schema.names if name in self.columns]
        threads = use_threads and _may_use_threads(self.source)
        with parquet_errors(self.source.name), _opened(self.source, self._footer) as file:
            table = file.read_row_groups(list(range(begin, end)), columns=stored, use_threads=threads)
        return self.as_schema(table.slice(first - int(self.edges[begin]), last - first), schema)


class _Reader:
    """Reads the rows of a shard in order."""

    def __init__(self, shard: _Shard, span: EventRange, schema: pa.Schema, batch_bytes: int) -> None:
        self.shard = shard
        self._position, self._end = (
            int(n) for n in np.searchsorted(shard.event_ids, [span.start, span.stop])
        )
        self._batches = _decoded(shard, self._position, schema, batch_bytes)
        self._left = schema.empty_table()

    def take(self, stop: int) -> pa.Table:
        """The rows not yet taken whose event is below ``stop``."""
        target = min(int(np.searchsorted(self.shard.event_ids, stop)), self._end)
        wanted = max(target - self._position, 0)
        parts = [self._left]
        have = self._left.num_rows
        while have < wanted:
            parts.append(next(self._batches))
            have += parts[-1].num_rows
        rows = pa.concat_tables(parts)
        self._left = rows.slice(wanted)
        self._position += wanted
        return rows.slice(0, wanted)


def _decoded(shard: _Shard, position: int, schema: pa.Schema, batch_bytes: int) -> Iterator[pa.Table]:
    """Decode the rows from a position on, in batches of bounded size.

    This is not a method of the reader because the two would form a reference cycle, which kept hundreds of MB
    of decoded rows until the garbage collector ran: it does not count Arrow's memory.
    """
    edges = shard.edges
    first = int(np.searchsorted(edges, position, side="right")) - 1
    groups = list(range(first, len(edges) - 1))
    skip = position - int(edges[first])
    rows = batch_rows(shard.bytes, len(shard.event_ids), batch_bytes)
    columns = list(shard.columns.values())
    threads = _may_use_threads(shard.source)
    with parquet_errors(shard.source.name), _opened(shard.source) as file:
        for batch in file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=threads):
            table = shard.as_schema(pa.table(batch), schema)
            yield table.slice(min(skip, table.num_rows))
            skip = max(skip - table.num_rows, 0)


def _opened(source: Path | OpenableShard, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Open a shard. Remote ones are read in few large ranges."""
    if isinstance(source, Path):
        return pq.ParquetFile(source, metadata=footer)
    return pq.ParquetFile(source.open(), metadata=footer, pre_buffer=True)


def _may_use_threads(source: Path | OpenableShard) -> bool:
    """Whether Arrow may decode in threads: threads that read through Python can crash an exiting process.

    See https://github.com/apache/arrow/issues/34314.
    """
    return isinstance(source, Path)


def batch_rows(size: int, rows: int, batch_bytes: int = BATCH_BYTES) -> int:
    """The number of rows to decode at once, of a table with ``rows`` rows and ``size`` uncompressed bytes."""
    return int(np.clip(batch_bytes / max(size / max(rows, 1), 1), 1, BATCH_ROWS))


def _event_ids(source: Path | OpenableShard, file: pq.ParquetFile) -> EventIds:
    """Decode the event ids by batches. Stops at the first that is not ascending."""
    found = [checked_ids(pa.array([], file.schema_arrow.field("event_id").type))]
    last = found[0]
    for batch in file.iter_batches(BATCH_ROWS, columns=["event_id"], use_threads=False):
        found.append(checked_ids(batch.column(0)))
        ids = np.concatenate([last, found[-1]])
        if np.any(ids[1:] < ids[:-1]):
            raise UnusableDataset(f"{source.name}: event ids are not ascending")
        repeated = ids[1:][ids[1:] == ids[:-1]]
        if len(repeated):
            raise UnusableDataset(f"{source.name}: event {repeated[0]} occurs twice")
        last = ids[-1:]
    return np.concatenate(found)


def _in_order(parts: Sequence[pa.Table]) -> pa.Table:
    table = pa.concat_tables(parts)
    events = np.asarray(table.column("event_id"))
    if np.any(events[1:] < events[:-1]):
        table = table.take(pc.sort_indices(table, [("event_id", "ascending")]))
    return table


def common_events(tables: Mapping[str, EventTable], advice: str = "") -> EventIds:
    """Return the event ids of tables. Raises UnusableDataset, with ``advice``, if they differ."""
    first, *others = tables.values()
    for table in others:
        if not np.array_equal(table.event_ids, first.event_ids):
            raise UnusableDataset(f"tables {table.name} and {first.name} have different events{advice}")
    return first.event_ids


#: Stored bytes of all tables that :func:`blocks_of` reads at once; many times as much in memory.
BLOCK_BYTES: Final = 8 * 1024**2


def blocks_of(
    tables: Mapping[str, EventTable], ids: EventIds
) -> Iterator[tuple[EventIds, dict[str, pa.Table]]]:
    """Read the events ``ids`` of several tables by blocks: yields the ids of a block and its tables.

    A table of a block also has all other events between the first and the last of its ids.
    """
    size = sum(table.bytes_per_event for table in tables.values())
    step = max(1, int(BLOCK_BYTES / max(size, 1)))
    blocks = [ids[start : start + step] for start in range(0, len(ids), step)]
    ranges = [EventRange(int(block[0]), int(block[-1]) + 1) for block in blocks]
    streams = [table.read(ranges, batch_bytes=BLOCK_BYTES) for table in tables.values()]
    for block, *parts in zip(blocks, *streams, strict=True):
        yield block, dict(zip(tables, parts, strict=True))
