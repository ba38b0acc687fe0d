"""Sorts predictions by event, in bounded memory, into files of a span of events each.

Used for files that cannot be streamed: their row groups have no statistics, or wrong ones, overlap too much,
or are too large to be decoded whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Column, EventRange, Problem
from collidium.scoring import content
from collidium.scoring.blocks import MAX_JOB_ROWS, Span, TruthBlock, runs
from collidium.scoring.predictions import RowGroup
from collidium.scoring.problems import merge
from collidium.scoring.span import PredictionsReader

#: Maximum number of spans that a file is sorted into: a worker has a file open for each.
MAX_SPANS: Final = 256
#: Rows of a span, which are then sorted in memory.
SPAN_ROWS: Final = 4 * 1024**2
#: A span with this many rows beyond twice those of its truth is refused without being read again.
SPARE_ROWS: Final = 1024**2


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
        """The file for the rows of a span, if it has any."""
        return self.directory / f"{span}-{self.number}.arrow"


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """Files and rows of each span, the number of rows that belong to none, and their problems."""

    files: tuple[Path | None, ...]
    rows: tuple[int, ...]
    dropped: int
    problems: tuple[Problem, ...]


def spans_of(blocks: Sequence[TruthBlock]) -> list[Span]:
    """The spans that a file is sorted into, each small enough to be sorted in memory."""
    rows = max(SPAN_ROWS, sum(block.rows for block in blocks) // MAX_SPANS)
    return [Span(run, ()) for run in runs(blocks, rows)]


def runs_of_groups(groups: Sequence[RowGroup]) -> list[tuple[int, ...]]:
    """Cut row groups into runs, one per call."""
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
    """Write the rows of each span to its file, in the order of the input; raises Unreadable."""
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
    """The problem of a span with far more rows than its truth, which is not worth reading."""
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
            # A thread that cannot start under a worker's memory limit is no MemoryError.
            options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
            writer = self._stack.enter_context(pa.ipc.new_stream(sink, table.schema, options=options))
            self._writers[span] = writer
        writer.write_table(table)
