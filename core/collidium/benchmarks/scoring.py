"""Scores a span of events in a worker process: predictions and truth in, a tally out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.benchmarks.blocks import Span, TruthBlock
from collidium.benchmarks.problems import merge
from collidium.benchmarks.reading import PredictionsReader
from collidium.benchmarks.streaming import Findings, by_block, from_partitions, from_row_groups
from collidium.contracts.task import Block, EventRange, Problem, Tally, Task

BlockPredictions = tuple[TruthBlock, pa.Table]


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """What one worker scores in one call."""

    task: Task
    #: The eval range, of which ``span`` is a part.
    events: EventRange
    span: Span
    #: Parquet files of the truth tables by name.
    truth: Mapping[str, Path]
    predictions: Path
    #: Files of the span's rows to be read instead; None: the row groups of ``predictions``.
    partitions: tuple[Path, ...] | None = None


@dataclass(frozen=True, slots=True)
class ScoringResult:
    """``tally`` is None where there are problems. ``rows``: how many the job has answered for."""

    tally: Tally | None
    problems: tuple[Problem, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a task makes of all tallies."""

    tally: Tally
    metrics: Mapping[str, float]
    warnings: Sequence[str]


def score(job: ScoringJob) -> ScoringResult:
    """Check and score the blocks of a job.

    Raises Unreadable and Disordered for what is wrong with the file; anything else that it raises is the
    fault of the task or of the truth.
    """
    findings = Findings()
    tallies: list[Tally] = []
    with _blocks(job, findings) as blocks, _truth(job.truth) as truth:
        for block, predictions in blocks:
            tables = {
                name: file.read_row_group(block.index, use_threads=False) for name, file in truth.items()
            }
            data = Block(block.events, predictions, tables)
            findings.problems += job.task.check(data)
            if findings.problems:
                findings.problems = merge(findings.problems)
            else:
                tallies.append(job.task.score(data))
    tally = None if findings.problems else job.task.merge(tallies)
    return ScoringResult(tally, tuple(findings.problems), findings.rows)


def decode(job: ScoringJob) -> None:
    """Read what :func:`score` reads of the predictions, and nothing else.

    Tells, after a worker died or ran over its limits, whether the file did that or the task.
    """
    with _blocks(job, Findings()) as blocks:
        for _ in blocks:
            pass


def conclude(request: tuple[Task, Sequence[Tally]]) -> Conclusion:
    """Merge all tallies, in order of events, and compute the metrics."""
    task, tallies = request
    tally = task.merge(tallies)
    return Conclusion(tally, dict(task.metrics(tally)), list(task.warnings(tally)))


@contextmanager
def _blocks(job: ScoringJob, findings: Findings) -> Iterator[Iterator[BlockPredictions]]:
    with PredictionsReader(job.predictions, job.task.card.columns, job.events) as reader:
        if job.partitions is None:
            chunks = from_row_groups(reader, job.span, findings)
        else:
            chunks = from_partitions(job.partitions, job.span.events)
        yield by_block(job.span.blocks, chunks, reader.empty, findings)


@contextmanager
def _truth(paths: Mapping[str, Path]) -> Iterator[dict[str, pq.ParquetFile]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(pq.ParquetFile(path, memory_map=True)) for name, path in paths.items()
        }
