"""Jobs of worker processes: read and score a span of events; then compute metrics of all tallies.

Whatever is wrong with a submitted file ends here, as a problem or as :class:`Unreadable`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from traceback import format_exc
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.executor import Opaque
from collidium.contracts.task import Block, Column, EventRange, Problem, Tally, Task
from collidium.records import BinnedScore
from collidium.scoring import content
from collidium.scoring.blocks import Piece, Span, TruthBlock
from collidium.scoring.content import Spreads
from collidium.scoring.predictions import RowGroup, Unreadable, first_line, is_of_machine
from collidium.scoring.problems import merge
from collidium.scoring.truth.tables import TableReader
from collidium.scoring.uncertainty import (
    PUBLIC_SEED,
    GroupTally,
    binned_scores,
    by_group,
    groups_of,
    merged,
    resampled,
    standard_errors,
)

T = TypeVar("T")

#: Rows that are decoded at once where a row group may be of any size.
BATCH_ROWS: Final = 512 * 1024
#: Where only the beginning of a row group is needed.
BEGINNING_BATCH_ROWS: Final = 64 * 1024
# A thread that cannot start under a worker's memory limit is no MemoryError.
_READ: Final = pa.ipc.IpcReadOptions(use_threads=False)

BlockPredictions = tuple[TruthBlock, pa.Table]


class Disordered(Exception):
    """A row group contradicts its statistics, or is not sorted where the plan needs it."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Decoded rows of the eval range, sorted by event."""

    table: pa.Table
    #: Column event_id of ``table``, shape (rows,), in the width submitted.
    events: npt.NDArray[Any]
    #: Number of rows left out: of unknown events, or without a usable value.
    dropped: int
    problems: tuple[Problem, ...]
    #: Whether the decoded rows were sorted by event in the file.
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

        Raises Unreadable, and Disordered if the statistics are wrong, or if a job that has read only the
        beginning of an unsorted row group may have missed rows.
        """
        group = piece.group
        rows = self._rows(self._whole(group) if piece.is_last else self._beginning(group, stop))
        _check_claim(rows.events, group)
        if piece.is_last and not piece.is_first and not rows.were_sorted:
            raise Disordered(f"row group {group.index} has unsorted events of several jobs")
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
    """Call into the reader; whatever it raises for a hostile file becomes Unreadable.

    A MemoryError is left to the executor, whose limit it met.
    """
    try:
        return function(*arguments, **options)
    except Exception as error:  # corrupt pages make the reader raise all kinds; each means the same
        if is_of_machine(error):
            raise
        raise Unreadable("corrupt", f"the file cannot be decoded: {first_line(error)}") from error


def _plain(table: pa.Table) -> pa.Table:
    """Decode dictionaries, which some writers use for integers, too."""
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
    """The problems of the rows read so far; each row of the file is counted exactly once."""

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
    """Read the rows of a span that :func:`.partitioning.partition` has written."""
    tables = []
    for path in paths:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file, options=_READ) as stream:
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
    """Merge tables that are sorted by event; copies only if their events overlap.

    Rows of one event stay in the order of the pieces.
    """
    filled = [piece for piece in pieces if piece.num_rows] or pieces[:1]
    table = pa.concat_tables(filled)
    edges = [piece.column("event_id")[row].as_py() for piece in filled if piece.num_rows for row in (0, -1)]
    if all(edges[number] <= edges[number + 1] for number in range(1, len(edges) - 1, 2)):
        return table
    events = np.concatenate([content.as_numpy(piece.column("event_id")) for piece in filled])
    return table.combine_chunks().take(np.argsort(events, kind="stable"))


# -- scoring ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """The input of one call of :func:`score`."""

    task: Task
    #: The eval range, of which ``span`` is a part.
    events: EventRange
    span: Span
    #: Files of the truth tables by name.
    truth: Mapping[str, Path]
    predictions: Path
    #: Files of the span's sorted rows; None: read the row groups of ``predictions``.
    partitions: tuple[Path, ...] | None = None


@dataclass(frozen=True, slots=True)
class SpanResult:
    """``tallies`` are None if there are problems; ``rows`` is the number of rows that the job counted."""

    #: A pickled :class:`GroupTally` for each group of events that the job scored a part of, in order of
    #: events, for :func:`conclude`. They are third-party objects, which the server must not load.
    tallies: Opaque | None
    problems: tuple[Problem, ...]
    rows: int
    #: For columns that must have one value in the whole file, of which a job sees a part.
    spreads: Spreads = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """The groups of events that metrics are computed of, by number; None: all."""

    groups: Collection[int] | None = None
    #: Whether metrics may be undefined: an error on events that are held back would reveal something.
    lenient: bool = False
    #: The seed of the draws.
    seed: str = PUBLIC_SEED


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The metrics of all tallies, which may be large and stay in the worker."""

    metrics: Mapping[str, float]
    warnings: Sequence[str]
    replicates: Mapping[str, Sequence[float]]
    uncertainties: Mapping[str, float]
    curves: tuple[BinnedScore, ...] = ()
    #: The traceback of the task, for operators; metrics may then be incomplete.
    failure: str = ""


def score(job: ScoringJob) -> SpanResult:
    """Check and score the blocks of a job.

    Raises Unreadable and Disordered for faults of the file; any other error is a fault of the task or truth.
    """
    findings = Findings()
    groups = groups_of(job.events)
    tallies: list[GroupTally] = []
    columns = job.task.card.columns
    spreads: Spreads = {}
    with _blocks(job, findings) as blocks, ExitStack() as stack:
        truth = {name: stack.enter_context(TableReader(path)) for name, path in job.truth.items()}
        for block, predictions in blocks:
            tables = {name: table.read(block.index) for name, table in truth.items()}
            data = Block(block.events, predictions, tables)
            spreads = content.joined([spreads, content.spreads_of(predictions, columns)])
            findings.problems += content.within_events(predictions, columns)
            findings.problems += job.task.check(data)
            if findings.problems:
                findings.problems = merge(findings.problems)
            else:
                tallies += [GroupTally(group, job.task.score(part)) for group, part in by_group(data, groups)]
    if findings.problems:
        return SpanResult(None, tuple(findings.problems), findings.rows, spreads)
    found = Opaque(pickle.dumps(merged(job.task, tallies), pickle.HIGHEST_PROTOCOL))
    return SpanResult(found, (), findings.rows, spreads)


def decode(job: ScoringJob) -> None:
    """Read the predictions as :func:`score` does, without the task.

    Called after a worker died or exceeded its limits, to find out whether the file or the task was the cause.
    """
    with _blocks(job, Findings()) as blocks:
        for _ in blocks:
            pass


def conclude(
    request: tuple[Task, Sequence[Opaque], Sequence[Selection]],
) -> tuple[list[Problem], list[Conclusion]]:
    """Merge the tallies of all jobs, in order of events, and compute the metrics of each selection.

    Returns either the problems of the whole file, which only the merged tally shows, or conclusions.
    """
    task, results, selections = request
    tallies = [tally for result in results for tally in pickle.loads(result)]  # noqa: S301 -- in a worker
    groups = merged(task, tallies)
    whole = task.merge([part.tally for part in groups])
    if problems := task.check_whole(whole):
        return list(problems), []
    return [], [_selected(task, groups, whole, selection) for selection in selections]


def _selected(task: Task, groups: Sequence[GroupTally], whole: Tally, selection: Selection) -> Conclusion:
    chosen = selection.groups
    tallies = [part.tally for part in groups if chosen is None or part.group in chosen]
    if not selection.lenient:
        whole = whole if chosen is None else task.merge(tallies)
        return _conclude(task, tallies, whole, selection.seed)
    made = Conclusion({}, [], {}, {})
    try:
        tally = task.merge(tallies)
        made = replace(made, metrics=_defined(task, tally))
        return replace(_conclude(task, tallies, tally, selection.seed), metrics=made.metrics)
    except Exception:  # of a third-party task, whose errors a server may not load
        return replace(made, failure=format_exc())


def _defined(task: Task, tally: Tally) -> dict[str, float]:
    metrics, names = task.metrics(tally), {metric.name for metric in task.card.metrics}
    return {name: value for name, value in metrics.items() if name in names and isfinite(value)}


def _conclude(task: Task, tallies: Sequence[Tally], tally: Tally, seed: str) -> Conclusion:
    metrics, warnings = dict(task.metrics(tally)), list(task.warnings(tally))
    found = resampled(task, tallies, task.sample_sizes(tally), seed)
    replicates = {name: values for name, values in found.items() if name in metrics}
    uncertainties = standard_errors(replicates, task.counts(tally))
    return Conclusion(metrics, warnings, replicates, uncertainties, binned_scores(task.curves(tally)))


@contextmanager
def _blocks(job: ScoringJob, findings: Findings) -> Iterator[Iterator[BlockPredictions]]:
    with PredictionsReader(job.predictions, job.task.card.columns, job.events) as reader:
        if job.partitions is None:
            chunks = from_row_groups(reader, job.span, findings)
        else:
            chunks = from_partitions(job.partitions, job.span.events)
        yield by_block(job.span.blocks, chunks, reader.empty, findings)
