"""Scores a file of predictions: inspects, plans, hands blocks of events to workers, merges.

The engine knows files, memory and workers, and no task in particular. Nothing of a submitted file is read
in this process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from collidium.contracts.executor import Executor, Limits, Opaque, StoredFile
from collidium.contracts.task import Problem, Task
from collidium.files.held import scratch_directory
from collidium.records import BinnedScore
from collidium.scoring import blocks, content, problems, reading
from collidium.scoring.blocks import Plan, PlanRequest, Span
from collidium.scoring.parts import Part
from collidium.scoring.predictions import ExtraColumns, Unreadable
from collidium.scoring.reading import Disordered, PartitionJob
from collidium.scoring.span import Conclusion, ScoringJob, ScoringResult, Selection
from collidium.scoring.uncertainty import Replicates, groups_of
from collidium.scoring.workers import Progress, Workers

if TYPE_CHECKING:
    from collidium.scoring.truth.tables import Truth

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What valid predictions are worth; ``metrics`` may lack those that the card allows to be missing."""

    metrics: dict[str, float]
    #: What a submitter should know; nothing that reveals a score.
    warnings: list[str]
    rows: int
    #: The metrics of resampled events, never to be shown; empty where there is one event alone.
    replicates: Replicates
    #: The standard error of each metric; empty where it is unknown.
    uncertainties: dict[str, float]
    #: What they are worth on the events that are held back, never to be shown before these count.
    held_back: Evaluation | None = None
    #: Which metrics are missing and why: not part of a dry run, as it reveals scores.
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
    part: Part | None = None,
    files: Mapping[Path, StoredFile] | None = None,
) -> Evaluation:
    """Check and score the predictions at ``path``.

    The result does not depend on the executor, on its workers, or on ``job_rows``, the rows of truth that
    one call should take. ``limits`` hold for each call. ``extra_columns``: what becomes of columns beyond the
    task's own. Of a ``part`` of the truth only its events count; what is sent for others is checked, too.
    ``files``: where other machines find the predictions and the truth; without, they are scored on this one.

    Raises :class:`~collidium.errors.InvalidInput` with all problems of the file, and
    :class:`~collidium.errors.ScoringFailed` where the task or the machine failed.
    """
    run = _Evaluation(Workers(task, executor, limits, files), truth, path, progress, extra_columns, part)
    try:
        plan = await run.inspect(job_rows)
        findings = await run.score(plan)
    except Unreadable as error:
        raise problems.refusal([error.problem]) from error
    return await run.conclude(plan, findings)


@dataclass(frozen=True, slots=True)
class _Findings:
    """What all jobs together have found."""

    tallies: list[Opaque]
    problems: list[Problem]
    rows: int

    @classmethod
    def of(cls, results: Iterable[ScoringResult]) -> _Findings:
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
    workers: Workers
    truth: Truth
    path: Path
    progress: Progress | None
    extra_columns: ExtraColumns
    part: Part | None

    async def inspect(self, job_rows: int | None) -> Plan:
        """Raises Unreadable, and InvalidInput with all that the footer shows."""
        card = self.workers.task.card
        max_rows = self.truth.rows(card.rows_of)
        request = PlanRequest(self.path, card, max_rows, self.extra_columns, self.truth.blocks, job_rows)
        [(plan, found)] = await self.workers.decode(blocks.make_plan, [request])
        if plan is None:
            raise problems.refusal(found)
        return plan

    async def score(self, plan: Plan) -> _Findings:
        """Score all spans: streamed from the file where that is possible, else sorted by event first."""
        if plan.spans is not None:
            try:
                return _Findings.of(await self.workers.score(self._jobs(plan.spans), self.progress))
            except Disordered as error:
                logger.info("%s: %s; sorting it by event", self.path.name, error)
        async with scratch_directory(self.path.parent) as directory:
            return await self._sort_and_score(plan, directory)

    async def conclude(self, plan: Plan, findings: _Findings) -> Evaluation:
        """Merge the tallies. Raises InvalidInput where there are problems instead."""
        if findings.problems:
            raise problems.refusal(findings.problems)
        if findings.rows != plan.rows:
            self.workers.fail(f"{findings.rows} rows were scored, the file has {plan.rows}")
        selections = self._selections()
        found, made = await self.workers.conclude(findings.tallies, selections)
        if found:
            raise problems.refusal(found)
        counts, *held_back = [
            self._evaluation(one, findings.rows, lenient=selection.lenient)
            for one, selection in zip(made, selections, strict=True)
        ]
        return replace(counts, held_back=held_back[0]) if held_back else counts

    def _evaluation(self, made: Conclusion, rows: int, *, lenient: bool) -> Evaluation:
        if not lenient:
            self._check_metrics(made.metrics)
        elif made.failure:
            logger.warning("task %s on the final events: %s", self.workers.task.card.name, made.failure)
        warnings = [*self._left_out(rows), *made.warnings]
        missing = self._missing(made.metrics)
        return Evaluation(
            dict(made.metrics),
            warnings,
            rows,
            made.replicates,
            dict(made.uncertainties),
            missing=missing,
            curves=made.curves,
        )

    def _selections(self) -> list[Selection]:
        """What counts, and what is held back, if anything is."""
        if self.part is None:
            return [Selection()]
        parts = [self.part, self.part.final] if self.part.kind == "public" else [self.part]
        count = len(groups_of(self.truth.events))
        return [Selection(part.groups(count), lenient=part.kind == "final") for part in parts]

    def _left_out(self, rows: int) -> list[str]:
        """What a submitter of half a file should hear, since it is legal and costs score."""
        table = self.workers.task.card.rows_of
        total = self.truth.rows(table)
        return [f"{total - rows:,} of {total:,} {table} have no prediction"] if rows < total else []

    def _jobs(
        self, spans: Iterable[Span], files: Mapping[int, tuple[Path, ...]] | None = None
    ) -> list[ScoringJob]:
        """A job for each span; ``files`` hold the sorted rows of some spans, by number."""
        truth = self.truth
        return [
            ScoringJob(
                *(self.workers.task, truth.events, span, truth.paths, self.path),
                partitions=None if files is None else files[number],
            )
            for number, span in enumerate(spans)
            if files is None or number in files
        ]

    async def _sort_and_score(self, plan: Plan, directory: Path) -> _Findings:
        spans = reading.spans_of(self.truth.blocks)
        starts = tuple(span.events.start for span in spans)
        columns = self.workers.task.card.columns
        sorting = [
            PartitionJob(self.path, columns, self.truth.events, groups, starts, directory, number)
            for number, groups in enumerate(reading.runs_of_groups(plan.groups))
        ]
        parts = await self.workers.decode(reading.partition, sorting)
        found = [problem for part in parts for problem in part.problems]
        dropped = sum(part.dropped for part in parts)
        files = {}
        for number, span in enumerate(spans):
            rows = sum(part.rows[number] for part in parts)
            if too_many := reading.overflow(span, rows):
                found.append(too_many)
            else:
                paths = (part.files[number] for part in parts)
                files[number] = tuple(path for path in paths if path is not None)
        results = await self.workers.score(self._jobs(spans, files), self.progress)
        return _Findings.of([ScoringResult(None, tuple(found), dropped), *results])

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
