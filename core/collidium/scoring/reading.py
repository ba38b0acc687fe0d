"""Decodes predictions in a worker process: row groups in, whole events by block out.

Everything that a file may hold wrongly ends here: as problems, or as :class:`Unreadable`. A file whose events
are all over the place is first sorted into files of a span of events each, in bounded memory: where row
groups have no statistics, lie, overlap too much or are too large to be decoded whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.task import Column, EventRange, Problem
from collidium.scoring import content
from collidium.scoring.blocks import MAX_JOB_ROWS, Piece, Span, TruthBlock, runs
from collidium.scoring.predictions import RowGroup, Unreadable, first_line
from collidium.scoring.problems import merge

T = TypeVar("T")

#: Rows that are decoded at once where a row group may be of any size.
BATCH_ROWS: Final = 512 * 1024
#: Where only the beginning of a row group is needed.
BEGINNING_BATCH_ROWS: Final = 64 * 1024

#: Spans that a file is sorted into at the most: a worker has a file open for each.
MAX_SPANS: Final = 256
#: Rows of a span, which are then sorted in memory.
SPAN_ROWS: Final = 4 * 1024**2
#: A span with this many rows beyond twice what there is to predict is refused without being read again.
SPARE_ROWS: Final = 1024**2


class Disordered(Exception):
    """A row group has other events than its statistics claim, or in another order: the plan is void."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Decoded rows, sorted by event, all of them in the eval range, and what had to be left out."""

    table: pa.Table
    #: Column event_id of ``table``, shape (rows,), in the width submitted.
    events: npt.NDArray[Any]
    #: Rows that are in no event, or hold no value that counts.
    dropped: int
    problems: tuple[Problem, ...]
    #: Whether all that were decoded came in the order of events.
    were_sorted: bool


class PredictionsReader:
    """Reads a file of predictions; a context manager."""

    def __init__(self, path: Path, columns: Sequence[Column], events: EventRange) -> None:
        """``events`` is the eval range. Raises Unreadable."""
        self._columns = columns
        self._names = [column.name for column in columns]
        self._events = events
        self._file = decoding(pq.ParquetFile, path, memory_map=True)
        #: A table without rows, of the columns and types that are read.
        self.empty = _plain(decoding(self._file.schema_arrow.empty_table).select(self._names))

    def __enter__(self) -> PredictionsReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, piece: Piece, stop: int) -> Rows:
        """Decode the rows of a piece of a job that ends before event ``stop``.

        Raises Unreadable, and Disordered where the statistics lied, or where another job has read only the
        beginning, and rows for it may have followed.
        """
        group = piece.group
        rows = self._rows(self._whole(group) if piece.is_last else self._beginning(group, stop))
        _check_claim(rows.events, group)
        if piece.is_last and not piece.is_first and not rows.were_sorted:
            raise Disordered(f"row group {group.index} has events of several jobs in no order")
        return rows

    def _whole(self, group: RowGroup) -> pa.Table:
        table = decoding(self._file.read_row_group, group.index, self._names, use_threads=False)
        if table.num_rows != group.rows:
            raise Unreadable(
                "corrupt", f"row group {group.index} has {table.num_rows} rows, not {group.rows} as it claims"
            )
        return table

    def _beginning(self, group: RowGroup, stop: int) -> pa.Table:
        """All rows up to a known event that is not below ``stop``, and some more."""
        batches = []
        for batch in self._batches([group.index], BEGINNING_BATCH_ROWS):
            batches.append(batch)
            last = batch.column("event_id")[-1].as_py()
            if last is not None and stop <= last < self._events.stop:
                break
        return decoding(pa.Table.from_batches, batches)

    def stream(self, groups: Sequence[int]) -> Iterator[Rows]:
        """Decode row groups of any size, a batch at a time. Raises Unreadable."""
        for batch in self._batches(groups, BATCH_ROWS):
            yield self._rows(pa.Table.from_batches([batch]))

    def _batches(self, groups: Sequence[int], rows: int) -> Iterator[pa.RecordBatch]:
        batches = self._file.iter_batches(rows, list(groups), self._names, use_threads=False)
        while (batch := decoding(lambda: next(batches, None))) is not None:
            if batch.num_rows:
                yield batch

    def _rows(self, table: pa.Table) -> Rows:
        table = _plain(table.select(self._names))
        were_sorted = _is_sorted(table.column("event_id"))
        problems, kept = content.check(table, self._columns, self._events, in_order=were_sorted)
        events = content.as_numpy(kept.column("event_id"))
        if not were_sorted:
            kept = kept.take(np.argsort(events, kind="stable"))
            events = content.as_numpy(kept.column("event_id"))
        return Rows(kept, events, table.num_rows - kept.num_rows, tuple(problems), were_sorted)


def decoding(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Call into the reader; whatever it raises over a hostile file becomes Unreadable."""
    try:
        return function(*arguments, **options)
    except MemoryError:
        raise Unreadable(
            "too-large-to-decode", "the file does not fit into memory when it is decoded"
        ) from None
    except Exception as error:  # corrupt pages make the reader raise all kinds; each means the same
        raise Unreadable("corrupt", f"the file cannot be decoded: {first_line(error)}") from error


def _plain(table: pa.Table) -> pa.Table:
    """Values instead of places in a dictionary, which some writers declare for integers, too."""
    for number, one in enumerate(table.schema):
        if isinstance(one.type, pa.DictionaryType):
            values = decoding(table.column(number).cast, one.type.value_type)
            table = table.set_column(number, one.name, values)
    return table


def _is_sorted(column: pa.ChunkedArray[Any]) -> bool:
    """Whether no value is null, or less than the one before it."""
    if column.null_count:
        return False
    values = content.as_numpy(column)
    return not np.any(values[1:] < values[:-1])


def _check_claim(events: npt.NDArray[Any], group: RowGroup) -> None:
    if group.first is None or group.last is None or not len(events):
        return
    if events[0] < group.first or events[-1] > group.last:
        raise Disordered(f"row group {group.index} has events outside of its statistics")


# -- block by block ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Findings:
    """What the rows so far have shown; each row of the file is counted exactly once."""

    rows: int = 0
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class Chunk:
    """Rows sorted by event; no chunk to come has rows of events below ``complete_below``."""

    table: pa.Table
    events: npt.NDArray[Any]
    complete_below: int

    def take(self, stop: int) -> pa.Table:
        """Remove and return the rows of events below ``stop``."""
        count = content.rows_below(self.events, stop)
        taken = self.table.slice(0, count)
        self.table, self.events = self.table.slice(count), self.events[count:]
        return taken


def from_row_groups(reader: PredictionsReader, span: Span, findings: Findings) -> Iterator[Chunk]:
    """Decode the pieces of a span in turn. Raises Unreadable and Disordered."""
    start, stop = span.events.start, span.events.stop
    for piece, complete_below in span.steps():
        rows = reader.read(piece, stop)
        if piece.is_last:
            findings.rows += rows.dropped
            findings.problems += rows.problems
        first, last = (content.rows_below(rows.events, edge) for edge in (start, stop))
        yield Chunk(rows.table.slice(first, last - first), rows.events[first:last], complete_below)


def from_partitions(paths: Sequence[Path], events: EventRange) -> Iterator[Chunk]:
    """Read all rows of a span that :func:`.partitioning.partition` has put together."""
    tables = []
    for path in paths:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            tables.append(stream.read_all())
    if tables:
        table = in_order(tables)
        yield Chunk(table, content.as_numpy(table.column("event_id")), events.stop)


def by_block(
    blocks: Iterable[TruthBlock], chunks: Iterable[Chunk], empty: pa.Table, findings: Findings
) -> Iterator[tuple[TruthBlock, pa.Table]]:
    """Yield each block with its predictions, sorted by event; ``empty`` where it has none."""
    source = iter(chunks)
    waiting: list[Chunk] = []
    complete_below = 0
    for block in blocks:
        stop = block.events.stop
        while complete_below < stop and (chunk := next(source, None)) is not None:
            waiting.append(chunk)
            complete_below = chunk.complete_below
        table = in_order([empty, *(chunk.take(stop) for chunk in waiting)])
        waiting = [chunk for chunk in waiting if len(chunk.events)]
        findings.rows += table.num_rows
        yield block, table


def in_order(pieces: Sequence[pa.Table]) -> pa.Table:
    """One table, sorted by event, of sorted pieces; copied only where these do not follow each other.

    Rows of one event stay in the order of the pieces.
    """
    filled = [piece for piece in pieces if piece.num_rows] or pieces[:1]
    table = pa.concat_tables(filled)
    edges = [piece.column("event_id")[row].as_py() for piece in filled if piece.num_rows for row in (0, -1)]
    if all(edges[number] <= edges[number + 1] for number in range(1, len(edges) - 1, 2)):
        return table
    events = np.concatenate([content.as_numpy(piece.column("event_id")) for piece in filled])
    return table.combine_chunks().take(np.argsort(events, kind="stable"))


@dataclass(frozen=True, slots=True)
class PartitionJob:
    """Row groups that one worker sorts into spans of events."""

    predictions: Path
    columns: tuple[Column, ...]
    #: The eval range.
    events: EventRange
    groups: tuple[int, ...]
    #: First event of each span; the first is the start of the eval range.
    starts: tuple[int, ...]
    #: Where to write; of several jobs each has a ``number``.
    directory: Path
    number: int

    def path(self, span: int) -> Path:
        """The file for the rows of a span; there is none when it has no rows."""
        return self.directory / f"{span}-{self.number}.arrow"


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """Files and rows of each span, how many rows are in none, and why."""

    files: tuple[Path | None, ...]
    rows: tuple[int, ...]
    dropped: int
    problems: tuple[Problem, ...]


def spans_of(blocks: Sequence[TruthBlock]) -> list[Span]:
    """What a file is sorted into: as many blocks in each span as are sorted in memory at once."""
    rows = max(SPAN_ROWS, sum(block.rows for block in blocks) // MAX_SPANS)
    return [Span(run, ()) for run in runs(blocks, rows)]


def runs_of_groups(groups: Sequence[RowGroup]) -> list[tuple[int, ...]]:
    """Cut row groups into runs, one for each call."""
    found: list[list[int]] = [[]]
    total = 0
    for group in groups:
        if found[-1] and total + group.rows > MAX_JOB_ROWS:
            found.append([])
            total = 0
        found[-1].append(group.index)
        total += group.rows
    return [tuple(run) for run in found]


def partition(job: PartitionJob) -> PartitionResult:
    """Write the rows of each span, as they come, to its file. Raises Unreadable."""
    counts = np.zeros(len(job.starts), np.int64)
    problems: list[Problem] = []
    dropped = 0
    with PredictionsReader(job.predictions, job.columns, job.events) as reader, ExitStack() as stack:
        files = _SpanFiles(job, stack)
        for rows in reader.stream(job.groups):
            problems = merge([*problems, *rows.problems])
            dropped += rows.dropped
            starts = [content.rows_below(rows.events, start) for start in job.starts]
            edges = np.array([*starts, len(rows.events)])
            for span in np.flatnonzero(np.diff(edges)).tolist():
                files.write(span, rows.table.slice(edges[span], edges[span + 1] - edges[span]))
            counts += np.diff(edges)
    paths = tuple(job.path(span) if count else None for span, count in enumerate(counts))
    return PartitionResult(paths, tuple(counts.tolist()), dropped, tuple(problems))


def overflow(span: Span, rows: int) -> Problem | None:
    """The problem of a span that has so many rows that reading them would only cost memory."""
    there = sum(block.rows for block in span.blocks)
    if rows <= 2 * there + SPARE_ROWS:
        return None
    return Problem(
        "too-many-rows",
        f"events {span.events.start} to {span.events.stop - 1} have {rows} rows, "
        f"at most {there} are there to be predicted",
        "event_id",
        event_id=span.events.start,
        count=rows - there,
    )


class _SpanFiles:
    """One open file for each span that has rows."""

    def __init__(self, job: PartitionJob, stack: ExitStack) -> None:
        self._job = job
        self._stack = stack
        self._writers: dict[int, pa.RecordBatchStreamWriter] = {}

    def write(self, span: int, table: pa.Table) -> None:
        writer = self._writers.get(span)
        if writer is None:
            sink = self._stack.enter_context(pa.OSFile(str(self._job.path(span)), "wb"))
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            writer = self._stack.enter_context(pa.ipc.new_stream(sink, table.schema, options=options))
            self._writers[span] = writer
        writer.write_table(table)
