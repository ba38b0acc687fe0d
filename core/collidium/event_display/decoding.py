"""Decoding of untrusted parquet files, to be run in a separate process: footers, and single events.

The outline of a file, from its footer, has the event ids and byte ranges of its row groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.executor import Opaque
from collidium.contracts.task import EventRange
from collidium.datasets.publishing.blinding import PUBLIC, in_public_order
from collidium.datasets.reading.types import as_schema, only_records, unified, why_unreadable
from collidium.datasets.row_hashes import HASHED, Hashes, hashes_of
from collidium.datasets.schemas import canonical
from collidium.errors import NotFound, TooLarge, UnusableDataset
from collidium.event_display import phoenix
from collidium.event_display import tables as stream
from collidium.event_display.tables import SHOWN, shown

Format = Literal["arrow", "phoenix"]

#: Bytes of a row group that are decoded at once, unless a single event has more.
_BATCH_BYTES: Final = 4 * 1024**2
_EVENT_ID: Final = "event_id"
#: Byte ranges with smaller gaps are requested as one.
_GAP: Final = 64 * 1024
#: Maximum number of column chunks of a file.
_MAX_CHUNKS: Final = 20_000

#: A byte range of a file: start, and stop (exclusive).
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups of a parquet file on this machine, one of which may hold the event."""

    path: Path
    groups: tuple[int, ...]
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class EventJob:
    """An event to decode, and the format of the result."""

    event_id: int
    #: By table; in addition to the requested ones, those that determine the public order of rows.
    row_groups: Mapping[str, RowGroups]
    #: The requested tables.
    tables: tuple[str, ...]
    #: Metadata for each table.
    about: Mapping[str, str]
    #: Whether the truth of the event is withheld.
    withheld: bool
    format: Format
    max_bytes: int


@dataclass(frozen=True, slots=True)
class HashJob:
    """An event whose public rows are to be hashed."""

    event_id: int
    row_groups: Mapping[str, RowGroups]
    #: Tables that are left out, as :attr:`RowHashes.unread`.
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowHashes:
    """Hashes of an event's public rows, by :mod:`collidium.datasets.row_hashes`."""

    #: Sorted, 8 bytes each.
    content: Opaque
    #: Tables that may have rows of the event and are too large to be hashed, or damaged.
    unread: tuple[str, ...] = ()

    @property
    def values(self) -> Hashes:
        return np.frombuffer(self.content, np.uint64)


def make(job: EventJob) -> Opaque:
    """Decode an event and write it in the job's format.

    Raises NotFound if no table has the event, TooLarge, and UnusableDataset for files that cannot be read.
    """
    rows: Mapping[str, pa.Table] = {
        name: _row(name, source, job.event_id, SHOWN[name].names) for name, source in job.row_groups.items()
    }
    if not any(rows[name].num_rows for name in job.tables if name in rows):
        raise NotFound(f"there is no event {job.event_id} in this dataset")
    if job.withheld:
        rows = _in_public_order(rows)
    tables = {name: shown(name, rows[name]) if name in rows else pa.table({}) for name in job.tables}
    if job.withheld:
        tables = {name: table.select(_public(name, table)) for name, table in tables.items()}
    content = (
        phoenix.document(tables, job.event_id, job.about)
        if job.format == "phoenix"
        else stream.write(tables, job.about)
    )
    if len(content) > job.max_bytes:
        raise TooLarge(
            f"event {job.event_id} has {len(content):,} bytes, and the limit of the event display is "
            f"{job.max_bytes:,}: request fewer tables, or load it with collidium.datasets"
        )
    return Opaque(content)


def hash_rows(job: HashJob) -> RowHashes:
    """Return the hashes of the event's public rows. Tables without all the hashed columns have none."""
    hashes, unread = [np.zeros(0, np.uint64)], list(job.unread)
    for name, source in job.row_groups.items():
        try:
            row = _row(name, source, job.event_id, HASHED[name])
            filled = {column for column in row.column_names if not row[column].null_count}
            if set(HASHED[name]) <= filled:
                hashes.append(hashes_of(name, row)[0])
        except UnusableDataset:
            unread.append(name)
    return RowHashes(Opaque(np.unique(np.concatenate(hashes)).tobytes()), tuple(unread))


def _public(name: str, table: pa.Table) -> list[str]:
    return [column for column in table.column_names if column in PUBLIC[name]]


def _in_public_order(rows: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
    """Sort rows so that their order does not reveal truth, as events without truth are published."""
    present = {name: row for name, row in rows.items() if row.num_rows}
    hits = present.get("tracker_hits")
    if hits is not None and ("particle_id" not in hits.column_names or hits["particle_id"].null_count):
        return rows
    return {**rows, **in_public_order(present)}


def _row(name: str, source: RowGroups, event_id: int, columns: Collection[str]) -> pa.Table:
    """Read the event's row of a table, with canonical column names; empty if the table has none."""
    try:
        with pq.ParquetFile(source.path) as file:
            stored = canonical(name, file.schema_arrow.names)
            if "event_id" not in stored:
                raise UnusableDataset(f"table {name} has no column event_id")
            known = {
                column: old for column, old in stored.items() if column in columns or column == "event_id"
            }
            _refuse_records(name, file.schema_arrow)
            fields = [file.schema_arrow.field(old).with_name(column) for column, old in known.items()]
            schema = unified(name, {name: pa.schema(fields)})
            for group in source.groups:
                index = _row_index(file, group, stored["event_id"], event_id)
                if index is not None:
                    row = _row_at(file, group, list(known.values()), index)
                    named = row.select(list(known.values())).rename_columns(list(known))
                    return as_schema(named, schema, f"table {name}")
            return schema.empty_table()
    except MemoryError:
        raise  # a subclass of it is an ArrowException
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:
        raise UnusableDataset(f"table {name} {why_unreadable(error)}") from error


def _refuse_records(name: str, schema: pa.Schema) -> None:
    """Raise UnusableDataset if all columns hold records, none of which would be shown."""
    if (problem := only_records(schema)) is not None:
        raise UnusableDataset(f"table {name} {problem}")


def _row_index(file: pq.ParquetFile, group: int, column: str, event_id: int) -> int | None:
    """The index of the event's row in a row group."""
    ids = file.read_row_group(group, columns=[column]).column(0)
    if not pa.types.is_integer(ids.type) or ids.null_count:
        raise UnusableDataset("column event_id must be integers without nulls")
    found = np.flatnonzero(np.asarray(ids) == event_id)
    return int(found[0]) if len(found) else None


def _row_at(file: pq.ParquetFile, group: int, columns: list[str], index: int) -> pa.Table:
    """Read one row of a row group. Decodes the rows before it in small batches."""
    metadata = file.metadata.row_group(group)
    row_bytes = metadata.total_byte_size / max(metadata.num_rows, 1)
    rows = max(1, int(_BATCH_BYTES / max(row_bytes, 1)))
    for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
        if index < batch.num_rows:
            return pa.table(batch.slice(index, 1))
        index -= batch.num_rows
    raise UnusableDataset(f"row group {group} has fewer rows than its footer claims")


@dataclass(frozen=True, slots=True)
class Group:
    """A row group."""

    rows: int
    #: From the smallest to the largest event id; None if the footer has no statistics.
    events: EventRange | None
    #: Byte ranges of columns by their stored name.
    spans: dict[str, Span]

    def may_hold(self, event_id: int) -> bool:
        return self.rows > 0 and (self.events is None or event_id in self.events)


@dataclass(frozen=True, slots=True)
class Outline:
    """The footer of a shard."""

    #: Size of the file in bytes.
    size: int
    groups: tuple[Group, ...]
    columns: tuple[str, ...]
    #: The end of the file, including the footer.
    tail: Opaque

    @classmethod
    def of(cls, name: str, size: int, tail: bytes) -> Self:
        """Read the outline from the end of a file of ``size`` bytes; raises UnusableDataset.

        Untrusted input may crash the process or exhaust its memory: call it in another process, by
        :func:`read_outline`.
        """
        try:
            metadata = pq.read_metadata(pa.BufferReader(tail))
            chunks = (metadata.row_group(number).num_columns + 1 for number in range(metadata.num_row_groups))
            if sum(chunks) + metadata.num_columns > _MAX_CHUNKS:
                raise UnusableDataset(f"{name}: has too many columns and row groups")
            groups = [_group(metadata.row_group(number)) for number in range(metadata.num_row_groups)]
            columns = tuple(metadata.schema.to_arrow_schema().names)
        except UnusableDataset:
            raise
        except Exception as error:  # untrusted input may raise anything
            raise UnusableDataset(f"{name}: {why_unreadable(error)}") from error
        spans = [span for group in groups for span in group.spans.values()]
        if any(not 0 <= start < stop <= size for start, stop in spans):
            raise UnusableDataset(f"{name}: cannot be read as parquet: columns lie outside of the file")
        return cls(size, tuple(groups), columns, Opaque(tail))

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    @property
    def events(self) -> EventRange | None:
        """From the smallest to the largest event id; None if the file is empty or has no statistics."""
        filled = [group.events for group in self.groups if group.rows]
        known = [events for events in filled if events is not None]
        if not known or len(known) < len(filled):
            return None
        return EventRange(min(events.start for events in known), max(events.stop for events in known))

    def holding(self, event_id: int) -> tuple[int, ...]:
        """Indices of the row groups that may have the event."""
        return tuple(number for number, group in enumerate(self.groups) if group.may_hold(event_id))

    def spans(self, groups: Collection[int], columns: Collection[str]) -> list[Span]:
        """Byte ranges of columns of row groups, in order; ranges with small gaps are joined."""
        wanted = sorted(
            span for number in groups for name, span in self.groups[number].spans.items() if name in columns
        )
        joined: list[Span] = []
        for start, stop in wanted:
            if joined and start <= joined[-1][1] + _GAP:
                joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
            else:
                joined.append((start, stop))
        return joined


#: Returns the outline of a shard from its name, size in bytes and end; raises UnusableDataset.
OutlineReader = Callable[[str, int, bytes], Outline]


def read_outline(arguments: tuple[str, int, bytes]) -> Outline:
    """Call :meth:`Outline.of`, as a function of one argument for executors."""
    return Outline.of(*arguments)


def _group(group: Any) -> Group:
    spans: dict[str, Span] = {}
    events = None
    for index in range(group.num_columns):
        chunk = group.column(index)
        name = chunk.path_in_schema.partition(".")[0]
        start, stop = _span(chunk)
        before = spans.get(name, (start, stop))
        spans[name] = (min(start, before[0]), max(stop, before[1]))
        if chunk.path_in_schema == _EVENT_ID and group.num_rows:
            events = _events(chunk.statistics)
    return Group(group.num_rows, events, spans)


def _span(chunk: Any) -> Span:
    pages = [chunk.data_page_offset]
    if chunk.dictionary_page_offset is not None and chunk.dictionary_page_offset > 0:
        pages.append(chunk.dictionary_page_offset)
    return min(pages), min(pages) + chunk.total_compressed_size


def _events(statistics: Any) -> EventRange | None:
    if statistics is None or not statistics.has_min_max:
        return None
    first, last = statistics.min, statistics.max
    if not isinstance(first, int) or not isinstance(last, int) or not 0 <= first <= last:
        return None
    return EventRange(first, last + 1)
