"""Outlines of shards, from their footers: which events each row group has, and where its columns lie."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.executor import Opaque
from collidium.contracts.task import EventRange
from collidium.errors import UnusableDataset

_EVENT_ID: Final = "event_id"
#: A further request costs more than so many unneeded bytes.
_GAP: Final = 64 * 1024
#: Columns of row groups, all together: no shard of events needs as many.
_MAX_CHUNKS: Final = 20_000

#: Bytes of a file, the second end not included.
Span = tuple[int, int]


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
