"""Makes one event of parquet files, for a process of its own: untrusted files are decoded here alone.

Their outlines, from their footers, report which events each row group has, and where its columns lie.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.executor import Opaque
from collidium.contracts.task import EventRange
from collidium.datasets.publishing.public_order import in_public_order
from collidium.datasets.publishing.public_part import PUBLIC
from collidium.datasets.schemas import canonical
from collidium.errors import NotFound, TooLarge, UnusableDataset
from collidium.event_display import phoenix
from collidium.event_display import tables as stream
from collidium.event_display.tables import SHOWN, shown

Format = Literal["arrow", "phoenix"]

#: Bytes of a row group that are decoded at once, by its footer, unless one event has more.
_BATCH_BYTES: Final = 4 * 1024**2
_EVENT_ID: Final = "event_id"
#: A further request costs more than so many unneeded bytes.
_GAP: Final = 64 * 1024
#: Columns of row groups, all together: no shard of events needs as many.
_MAX_CHUNKS: Final = 20_000

#: Bytes of a file, the second end not included.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups of a parquet file on this machine, one of which may hold the event."""

    path: Path
    groups: tuple[int, ...]
    #: What had to be fetched.
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class EventJob:
    """What is made of one event."""

    event_id: int
    #: By table: those that are asked for, and those that the order of their rows needs.
    row_groups: Mapping[str, RowGroups]
    #: Tables that are asked for.
    tables: tuple[str, ...]
    #: Metadata of each table.
    about: Mapping[str, str]
    #: Whether its truth is withheld.
    withheld: bool
    format: Format
    #: Most bytes that may be made.
    largest: int


def make(job: EventJob) -> Opaque:
    """The event as it is sent.

    Raises NotFound where no table has it, TooLarge, and UnusableDataset for files that cannot be read.
    """
    rows: Mapping[str, pa.Table] = {
        name: _row(name, source, job.event_id) for name, source in job.row_groups.items()
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
    if len(content) > job.largest:
        raise TooLarge(
            f"event {job.event_id} has {len(content):,} bytes, and {job.largest:,} is the most that is shown "
            "here: ask for fewer tables, or load it with collidium.datasets"
        )
    return Opaque(content)


def _public(name: str, table: pa.Table) -> list[str]:
    return [column for column in table.column_names if column in PUBLIC[name]]


def _in_public_order(rows: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
    """Rows in an order that does not reveal truth; events without truth were published in it."""
    present = {name: row for name, row in rows.items() if row.num_rows}
    hits = present.get("tracker_hits")
    if hits is not None and ("particle_id" not in hits.column_names or hits["particle_id"].null_count):
        return rows
    return {**rows, **in_public_order(present)}


def _row(name: str, source: RowGroups, event_id: int) -> pa.Table:
    """The event's row of a table, its known columns by their canonical names; no row where it has none."""
    try:
        with pq.ParquetFile(source.path) as file:
            stored = canonical(name, file.schema_arrow.names)
            if "event_id" not in stored:
                raise UnusableDataset(f"table {name} has no column event_id")
            known = {
                column: old
                for column, old in stored.items()
                if column in SHOWN[name].names or column == "event_id"
            }
            for group in source.groups:
                place = _place(file, group, stored["event_id"], event_id)
                if place is not None:
                    row = _at(file, group, list(known.values()), place)
                    return row.select(list(known.values())).rename_columns(list(known))
            fields = [file.schema_arrow.field(old).with_name(column) for column, old in known.items()]
            return pa.schema(fields).empty_table()
    except MemoryError:
        raise  # Arrow's is one of its own, too
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:
        raise UnusableDataset(f"table {name} cannot be read as parquet: {error}") from error


def _place(file: pq.ParquetFile, group: int, column: str, event_id: int) -> int | None:
    """The row of a group that has the event."""
    ids = file.read_row_group(group, columns=[column]).column(0)
    if not pa.types.is_integer(ids.type) or ids.null_count:
        raise UnusableDataset("column event_id must be integers without nulls")
    found = np.flatnonzero(np.asarray(ids) == event_id)
    return int(found[0]) if len(found) else None


def _at(file: pq.ParquetFile, group: int, columns: list[str], place: int) -> pa.Table:
    """One row of a group; those before it are decoded, too, but never many at once."""
    about = file.metadata.row_group(group)
    per_row = about.total_byte_size / max(about.num_rows, 1)
    step = max(1, int(_BATCH_BYTES / max(per_row, 1)))
    for batch in _batches(file, group, columns, step):
        if place < batch.num_rows:
            return pa.table(batch.slice(place, 1))
        place -= batch.num_rows
    raise UnusableDataset(f"row group {group} has fewer rows than its footer claims")


def _batches(file: pq.ParquetFile, group: int, columns: list[str], rows: int) -> Iterator[Any]:
    return file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)


@dataclass(frozen=True, slots=True)
class Group:
    """A row group."""

    rows: int
    #: From the smallest to the largest event id; None where the footer has no statistics.
    events: EventRange | None
    #: Where each column lies, by its stored name.
    spans: dict[str, Span]

    def may_hold(self, event_id: int) -> bool:
        return self.rows > 0 and (self.events is None or event_id in self.events)


@dataclass(frozen=True, slots=True)
class Outline:
    """A shard, as its footer describes it."""

    #: Bytes of the file.
    size: int
    groups: tuple[Group, ...]
    columns: tuple[str, ...]
    #: The end of the file, with all of its footer.
    tail: Opaque

    @classmethod
    def of(cls, name: str, size: int, tail: bytes) -> Self:
        """Read the outline from the end of a file of ``size`` bytes; raises UnusableDataset.

        Over untrusted input the reader may also crash or use all memory: :func:`of_ending` is for another
        process.
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
        except Exception as error:  # whatever a reader raises over untrusted input
            raise UnusableDataset(f"{name}: cannot be read as parquet: {error}") from error
        spans = [span for group in groups for span in group.spans.values()]
        if any(not 0 <= start < stop <= size for start, stop in spans):
            raise UnusableDataset(f"{name}: cannot be read as parquet: columns lie outside of the file")
        return cls(size, tuple(groups), columns, Opaque(tail))

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    @property
    def events(self) -> EventRange | None:
        """From the smallest to the largest event id; None where the file is empty or has no statistics."""
        filled = [group.events for group in self.groups if group.rows]
        known = [events for events in filled if events is not None]
        if not known or len(known) < len(filled):
            return None
        return EventRange(min(events.start for events in known), max(events.stop for events in known))

    def holding(self, event_id: int) -> tuple[int, ...]:
        """The row groups that may have the event."""
        return tuple(number for number, group in enumerate(self.groups) if group.may_hold(event_id))

    def spans(self, groups: Collection[int], columns: Collection[str]) -> list[Span]:
        """Where those columns of those groups lie, in order; what nearly touches is one."""
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


#: Makes an outline of a shard's name, its size in bytes and its end; raises UnusableDataset.
OutlineReader = Callable[[str, int, bytes], Outline]


def of_ending(ending: tuple[str, int, bytes]) -> Outline:
    """:meth:`Outline.of` for a process of its own."""
    return Outline.of(*ending)


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
