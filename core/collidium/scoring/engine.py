"""Scores a file of predictions: inspects it, plans jobs, runs them in workers, and merges what they counted.

The engine knows files, memory and workers, and no particular task. This process never reads a submitted file.
A file can make its reader raise, crash, hang or use too much memory, and so can a task. The former is
reported to the submitter as a problem of the file, the latter is logged for operators.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from collidium.contracts.executor import (
    OWN_FAULTS,
    Executor,
    Limits,
    Opaque,
    OverLimit,
    StoredFile,
    WorkerCrashed,
    WorkerDied,
)
from collidium.contracts.task import Problem, Task
from collidium.errors import InvalidInput, ScoringFailed, ScoringInterrupted, Unavailable, Undecodable
from collidium.files.held import scratch_directory
from collidium.records import BinnedScore
from collidium.runtime.logs import message_of
from collidium.runtime.progress import Progress
from collidium.scoring import blocks, content, partitioning, problems, span
from collidium.scoring.blocks import Plan, PlanRequest, Span
from collidium.scoring.partitioning import PartitionJob
from collidium.scoring.predictions import ExtraColumns, Unreadable
from collidium.scoring.span import Conclusion, Disordered, ScoringJob, Selection, SpanResult
from collidium.scoring.uncertainty import PUBLIC_SEED, Replicates, groups_of

if TYPE_CHECKING:
    from collidium.scoring.truth.parts import ScoredTruth
    from collidium.scoring.truth.versions import Truth

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Packages whose tasks leave a worker as it was. After a call of another task it ends: 0.1 to 0.3 s of CPU.
OWN_PACKAGES: Final = {"collidium", "collidium_plugins", "collidium_tasks"}


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of draws: for the events that count, and for those that are held back."""

    counts: str = PUBLIC_SEED
    held_back: str = PUBLIC_SEED


PUBLIC_SEEDS: Final = Seeds()


@dataclass(frozen=True, slots=True)
class ScoringResult:
    """The scores of valid predictions; ``metrics`` may lack those that the card allows to be missing."""

    metrics: dict[str, float]
    #: For submitters, also of a dry run: nothing here reveals a score.
    warnings: list[str]
    rows: int
    #: The metrics of resampled events, never published; empty for a single event.
    replicates: Replicates
    #: The standard error of each metric for which it is known.
    uncertainties: dict[str, float]
    #: The scores on the events that are held back, never published before these count.
    held_back: ScoringResult | None = None
    #: Which metrics are missing and why; left out of a dry run, as it reveals scores.
    missing: list[str] = field(default_factory=list)
    curves: tuple[BinnedScore, ...] = ()


async def evaluate(
    task: Task,
    truth: Truth,
    path: Path,
    *,
    executor: Executor,
    limits: Limits,
    progress: Progress | None = None,
    job_rows: int | None = None,
    extra_columns: ExtraColumns = "refuse",
    part: ScoredTruth | None = None,
    seeds: Seeds = PUBLIC_SEEDS,
    files: Mapping[Path, StoredFile] | None = None,
) -> ScoringResult:
    """Check and score the predictions at ``path``.

    The result depends neither on the executor and its workers nor on ``job_rows``, the rows of truth per
    call. ``limits`` apply to each call. ``extra_columns``: whether columns that the task does not ask for are
    refused or ignored. With a ``part`` of the truth only its events count; predictions for the others are
    checked, too. ``seeds``: of the draws for standard errors. ``files``: where other machines find
    predictions and truth; None: score on this machine.

    Raises
    ------
    InvalidInput
        With all problems of the file.
    Undecodable
        A worker that reads the file crashes or exceeds its limits, also when it is repeated alone.
    ScoringFailed
        The task failed.
    ScoringInterrupted
        Workers were killed or did not start, also when their calls were repeated.
    """
    run = _Evaluation(
        _Workers(task, executor, limits, files), truth, path, progress, extra_columns, part, seeds
    )
    try:
        plan = await run.inspect(job_rows)
        findings = await run.score(plan)
    except Unreadable as error:
        kind = Undecodable if isinstance(error.__cause__, OWN_FAULTS) else InvalidInput
        raise problems.refusal([error.problem], kind) from error
    return await run.conclude(plan, findings)


@dataclass(frozen=True, slots=True)
class _Findings:
    """The results of all jobs."""

    tallies: list[Opaque]
    problems: list[Problem]
    rows: int

    @classmethod
    def of(cls, results: Iterable[SpanResult]) -> _Findings:
        results = list(results)
        found = [problem for result in results for problem in result.problems]
        spreads = content.joined(result.spreads for result in results)
        return cls(
            [result.tallies for result in results if result.tallies is not None],
            [*found, *content.within_file(spreads)],
            sum(result.rows for result in results),
        )


@dataclass(frozen=True, slots=True)
class _Evaluation:
    workers: _Workers
    truth: Truth
    path: Path
    progress: Progress | None
    extra_columns: ExtraColumns
    part: ScoredTruth | None
    seeds: Seeds

    async def inspect(self, job_rows: int | None) -> Plan:
        """Raises Unreadable, and InvalidInput with all problems that the footer shows."""
        card = self.workers.task.card
        max_rows = self.truth.rows(card.rows_of)
        request = PlanRequest(self.path, card, max_rows, self.extra_columns, self.truth.blocks, job_rows)
        [(plan, found)] = await self.workers.decode(blocks.make_plan, [request])
        if plan is None:
            raise problems.refusal(found)
        return plan

    async def score(self, plan: Plan) -> _Findings:
        """Score all spans: streamed from the file if possible, otherwise sorted by event first."""
        if plan.spans is not None:
            try:
                return _Findings.of(await self.workers.score(self._jobs(plan.spans), self.progress))
            except Disordered as error:
                logger.info("%s: %s; sorting it by event", self.path.name, error)
        async with scratch_directory(self.path.parent) as directory:
            return await self._sort_and_score(plan, directory)

    async def conclude(self, plan: Plan, findings: _Findings) -> ScoringResult:
        """Merge the tallies; raises InvalidInput with the problems if there are any."""
        if findings.problems:
            raise problems.refusal(findings.problems)
        if findings.rows != plan.rows:
            self.workers.fail(f"{findings.rows} rows were scored, the file has {plan.rows}")
        selections = self._selections()
        found, made = await self.workers.conclude(findings.tallies, selections)
        if found:
            raise problems.refusal(found)
        counts, *held_back = [
            self._evaluation(one, findings.rows, selection)
            for one, selection in zip(made, selections, strict=True)
        ]
        return replace(counts, held_back=held_back[0]) if held_back else counts

    def _evaluation(self, made: Conclusion, rows: int, selection: Selection) -> ScoringResult:
        if not selection.lenient:
            self._check_metrics(made.metrics)
        elif made.failure:
            logger.warning("task %s on the final events: %s", self.workers.task.card.name, made.failure)
        warnings = [*self._left_out(rows), *made.warnings]
        missing = self._missing(made.metrics)
        return ScoringResult(
            dict(made.metrics),
            warnings,
            rows,
            Replicates(made.replicates, selection.seed),
            dict(made.uncertainties),
            missing=missing,
            curves=made.curves,
        )

    def _selections(self) -> list[Selection]:
        """The groups of events that count, then those that are held back, if any."""
        if self.part is None or self.part.kind is None:
            return [Selection(seed=self.seeds.counts)]
        parts = [self.part, self.part.held_back]
        count = len(groups_of(self.truth.events))
        seeds = self.seeds.counts, self.seeds.held_back
        return [
            Selection(part.groups(count), lenient=part.kind == "final", seed=seed)
            for part, seed in zip(parts, seeds, strict=True)
            if part is not None
        ]

    def _left_out(self, rows: int) -> list[str]:
        """A warning for incomplete files, which are valid and score less."""
        table = self.workers.task.card.rows_of
        total = self.truth.rows(table)
        return [f"{total - rows:,} of {total:,} {table} have no prediction"] if rows < total else []

    def _jobs(
        self, spans: Iterable[Span], files: Mapping[int, tuple[Path, ...]] | None = None
    ) -> list[ScoringJob]:
        """A job for each span. ``files``: sorted rows of some spans, by number; only these become jobs."""
        truth = self.truth
        return [
            ScoringJob(
                self.workers.task,
                truth.events,
                span,
                truth.paths,
                self.path,
                partitions=None if files is None else files[number],
            )
            for number, span in enumerate(spans)
            if files is None or number in files
        ]

    async def _sort_and_score(self, plan: Plan, directory: Path) -> _Findings:
        spans = partitioning.spans_of(self.truth.blocks)
        starts = tuple(span.events.start for span in spans)
        columns = self.workers.task.card.columns
        sorting = [
            PartitionJob(self.path, columns, self.truth.events, groups, starts, directory, number)
            for number, groups in enumerate(partitioning.runs_of_groups(plan.groups))
        ]
        parts = await self.workers.decode(partitioning.partition, sorting)
        found = [problem for part in parts for problem in part.problems]
        dropped = sum(part.dropped for part in parts)
        files = {}
        for number, one in enumerate(spans):
            rows = sum(part.rows[number] for part in parts)
            if too_many := partitioning.overflow(one, rows):
                found.append(too_many)
            else:
                paths = (part.files[number] for part in parts)
                files[number] = tuple(path for path in paths if path is not None)
        results = await self.workers.score(self._jobs(spans, files), self.progress)
        return _Findings.of([SpanResult(None, tuple(found), dropped), *results])

    def _missing(self, metrics: Mapping[str, float]) -> list[str]:
        card = self.workers.task.card
        return [
            f"There is no {metric.name} when {metric.missing_when or 'it is undefined for these events'}"
            + (": the submission has no place on the leaderboard." if metric is card.primary_metric else ".")
            for metric in card.metrics
            if metric.name not in metrics
        ]

    def _check_metrics(self, metrics: Mapping[str, float]) -> None:
        card = self.workers.task.card
        if not card.allows(metrics):
            wanted = sorted(metric.name for metric in card.metrics)
            self.workers.fail(f"the task has metrics {sorted(metrics)}, its card names {wanted}")
        bad = [name for name in metrics if not isfinite(metrics[name])]
        if bad:
            self.workers.fail(f"these metrics are not finite: {', '.join(bad)}")


# -- workers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Workers:
    """An executor as one evaluation uses it; separates faults of the file from faults of the task."""

    task: Task
    executor: Executor
    limits: Limits
    #: Where other machines find the files of the jobs; None: score on this machine.
    files: Mapping[Path, StoredFile] | None

    async def decode(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Call a function that only reads the file, on this machine.

        Raises Unreadable, Disordered, ScoringFailed and ScoringInterrupted.
        """
        try:
            async with aclosing(self._map(function, items, local=True)) as results:
                return [result async for result in results]
        except (Unreadable, Disordered):
            raise
        except OWN_FAULTS as error:
            raise _unreadable(error) from error
        except WorkerDied as error:
            self.fail("workers were lost", error, ScoringInterrupted)
        except Exception as error:  # a full disk, a broken executor: nothing that a submitter can mend
            self.fail("reading the predictions failed", error)

    async def score(self, jobs: Sequence[ScoringJob], progress: Progress | None) -> list[SpanResult]:
        """Score jobs in order of events; sorted rows are in files of this machine and are scored here.

        Raises Unreadable, Disordered, Unavailable, ScoringFailed and ScoringInterrupted.
        """
        local = not self.files or any(job.partitions is not None for job in jobs)
        done: list[SpanResult] = []
        try:
            async with aclosing(self._map(span.score, jobs, local=local)) as results:
                async for result in results:
                    done.append(result)
                    if progress:
                        job = jobs[len(done) - 1]
                        progress(job.span.events.stop - job.events.start, len(job.events))
        except (Unreadable, Disordered, Unavailable):
            raise
        except OWN_FAULTS as error:
            # Reading the file again without the task shows which of the two is at fault.
            await self.decode(span.decode, [jobs[len(done)]])
            self.fail("the file can be read, but scoring it does not end well", error)
        except WorkerDied as error:
            self.fail("workers were lost", error, ScoringInterrupted)
        except Exception as error:  # whatever a third-party task raises
            self.fail("the task raised an error", error)
        return done

    async def conclude(
        self, tallies: Sequence[Opaque], selections: Sequence[Selection]
    ) -> tuple[list[Problem], list[Conclusion]]:
        """Compute the metrics of each selection by :func:`.span.conclude`; raises ScoringFailed."""
        request = (self.task, tallies, selections)
        try:
            async with aclosing(self._map(span.conclude, [request], local=True)) as results:
                return await anext(results)
        except WorkerDied as error:
            kind = ScoringFailed if isinstance(error, OWN_FAULTS) else ScoringInterrupted
            self.fail("computing the metrics ended its worker", error, kind)
        except Exception as error:  # as in score
            self.fail("the task could not make metrics of its tallies", error)

    def _map(
        self, function: Callable[[Item], Result], items: Sequence[Item], *, local: bool
    ) -> AsyncGenerator[Result, None]:
        is_own = type(self.task).__module__.partition(".")[0] in OWN_PACKAGES
        return self.executor.map_repeating(
            function,
            items,
            self.limits,
            raises=(Unreadable, Disordered),
            fresh=not is_own,
            local=local,
            files=self.files,
        )

    def fail(
        self, reason: str, error: Exception | None = None, kind: type[ScoringFailed] = ScoringFailed
    ) -> NoReturn:
        """Log what failed, and raise the error that says the predictions are not at fault."""
        name = self.task.card.name
        notes = "".join(getattr(error, "__notes__", ()))
        logger.error("scoring for task %s failed: %s: %r\n%s", name, reason, error, notes)
        how = "was interrupted" if kind is ScoringInterrupted else "failed"
        raise kind(
            f"scoring for task {name} {how}, not because of your predictions; the log has the reason",
            retry_after=60,
        ) from error


def _unreadable(error: OverLimit | WorkerCrashed) -> Unreadable:
    if isinstance(error, OverLimit):
        return Unreadable(
            "too-large-to-decode",
            f"decoding the file {message_of(error)}; write smaller row groups, sorted by event",
        )
    return Unreadable("corrupt", "the file cannot be decoded: its reader crashes over it")
