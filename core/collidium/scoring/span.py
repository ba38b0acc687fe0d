"""Scores a span of events in a worker process: predictions and truth in, a tally out."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from traceback import format_exc

import pyarrow as pa

from collidium.contracts.executor import Opaque
from collidium.contracts.task import Block, EventRange, Problem, Tally, Task
from collidium.records import BinnedScore
from collidium.scoring import content
from collidium.scoring.blocks import Span, TruthBlock
from collidium.scoring.content import Spreads
from collidium.scoring.curves import shown
from collidium.scoring.problems import merge
from collidium.scoring.reading import Findings, PredictionsReader, by_block, from_partitions, from_row_groups
from collidium.scoring.truth.tables import TableReader
from collidium.scoring.uncertainty import (
    GroupTally,
    Replicates,
    by_group,
    groups_of,
    merged,
    resampled,
    standard_errors,
)

BlockPredictions = tuple[TruthBlock, pa.Table]


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """What one worker scores in one call."""

    task: Task
    #: The eval range, of which ``span`` is a part.
    events: EventRange
    span: Span
    #: Files of the truth tables by name.
    truth: Mapping[str, Path]
    predictions: Path
    #: Files of the span's rows to be read instead; None: the row groups of ``predictions``.
    partitions: tuple[Path, ...] | None = None


@dataclass(frozen=True, slots=True)
class ScoringResult:
    """``tallies`` are None where there are problems. ``rows``: how many the job has answered for."""

    #: Pickled, for :func:`conclude`: a :class:`GroupTally` for each group of events that the job has a part
    #: in, in order of events. Third-party objects, which no server may load.
    tallies: Opaque | None
    problems: tuple[Problem, ...]
    rows: int
    #: Of the columns that must have one value in the whole file, of which a job sees a part.
    spreads: Spreads = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """Groups of events that are concluded on, by number; None: all."""

    groups: Collection[int] | None = None
    #: Whether metrics may be undefined there. Of events that are held back an error would show something.
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a task makes of all tallies; ``replicates`` are those of the metrics that there are.

    The tallies themselves may be large, and stay where they are.
    """

    metrics: Mapping[str, float]
    warnings: Sequence[str]
    replicates: Replicates
    uncertainties: Mapping[str, float]
    curves: tuple[BinnedScore, ...] = ()
    #: What the task raised, for operators; metrics may lack any then.
    failure: str = ""


def score(job: ScoringJob) -> ScoringResult:
    """Check and score the blocks of a job.

    Raises Unreadable and Disordered for what is wrong with the file; anything else that it raises is the
    fault of the task or of the truth.
    """
    findings = Findings()
    groups = groups_of(job.events)
    tallies: list[GroupTally] = []
    columns = job.task.card.columns
    spreads: Spreads = {}
    with _blocks(job, findings) as blocks, _truth(job.truth) as truth:
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
        return ScoringResult(None, tuple(findings.problems), findings.rows, spreads)
    found = Opaque(pickle.dumps(merged(job.task, tallies), pickle.HIGHEST_PROTOCOL))
    return ScoringResult(found, (), findings.rows, spreads)


def decode(job: ScoringJob) -> None:
    """Read what :func:`score` reads of the predictions, and nothing else.

    Shows, after a worker died or exceeded its limits, whether the file did that or the task.
    """
    with _blocks(job, Findings()) as blocks:
        for _ in blocks:
            pass


def conclude(
    request: tuple[Task, Sequence[Opaque], Sequence[Selection]],
) -> tuple[list[Problem], list[Conclusion]]:
    """Merge the tallies of all jobs, in order of events, and compute the metrics, also of resampled events.

    Once for each selection. There are no conclusions where there are problems, which the tally of all shows.
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
        return _conclude(task, tallies, whole if chosen is None else task.merge(tallies))
    made = Conclusion({}, [], {}, {})
    try:
        tally = task.merge(tallies)
        made = replace(made, metrics=_defined(task, tally))
        return replace(_conclude(task, tallies, tally), metrics=made.metrics)
    except Exception:  # of a third-party task, whose errors a server may not load
        return replace(made, failure=format_exc())


def _defined(task: Task, tally: Tally) -> dict[str, float]:
    metrics, names = task.metrics(tally), {metric.name for metric in task.card.metrics}
    return {name: value for name, value in metrics.items() if name in names and isfinite(value)}


def _conclude(task: Task, tallies: Sequence[Tally], tally: Tally) -> Conclusion:
    metrics, warnings = dict(task.metrics(tally)), list(task.warnings(tally))
    found = resampled(task, tallies, task.sample_sizes(tally))
    replicates = {name: values for name, values in found.items() if name in metrics}
    uncertainties = standard_errors(replicates, task.counts(tally))
    return Conclusion(metrics, warnings, replicates, uncertainties, shown(task.curves(tally)))


@contextmanager
def _blocks(job: ScoringJob, findings: Findings) -> Iterator[Iterator[BlockPredictions]]:
    with PredictionsReader(job.predictions, job.task.card.columns, job.events) as reader:
        if job.partitions is None:
            chunks = from_row_groups(reader, job.span, findings)
        else:
            chunks = from_partitions(job.partitions, job.span.events)
        yield by_block(job.span.blocks, chunks, reader.empty, findings)


@contextmanager
def _truth(paths: Mapping[str, Path]) -> Iterator[dict[str, TableReader]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(TableReader(path)) for name, path in paths.items()}
