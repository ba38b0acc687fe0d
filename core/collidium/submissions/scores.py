"""Scores files, and stores what each version of scorer and truth made of a submission.

A scoring is never replaced: later ones are stored in addition.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from collidium.contracts.executor import OverLimit, StoredFile, WorkerDied
from collidium.contracts.identity import ERASED
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.database import rows_of, transactional
from collidium.errors import InvalidInput, ScoringFailed, ScoringInterrupted, Unavailable, Undecodable
from collidium.model_runs import model_queue
from collidium.records import BinnedScore, EarlierScores, as_json
from collidium.runtime import metrics
from collidium.scoring import engine
from collidium.scoring.predictions import ExtraColumns
from collidium.scoring.truth.cache import stored_files
from collidium.scoring.truth.parts import ScoredTruth
from collidium.scoring.uncertainty import Replicates
from collidium.submissions.models import Scoring, Submission
from collidium.truth import draw_seeds, registry

if TYPE_CHECKING:
    from collidium.contracts.task import Card, Task
    from collidium.platform import Platform
    from collidium.scoring.engine import ScoringResult, Seeds
    from collidium.scoring.truth.versions import Truth

logger = logging.getLogger(__name__)

#: Minimum rounding of scores of models, absolute and relative.
_SMALLEST_STEP: Final = 1e-4
_SCORED: Final = """
SELECT submission_id FROM submissions JOIN scorings ON submission_id = submissions.id
WHERE challenge = ? AND scorings.scorer_version = ? AND scorings.truth_version = ?
"""
#: Keys of files for other machines that this process could not delete yet.
_UNDELETED: Final[set[str]] = set()


def rank_score(card: Card, submission: Submission) -> float | None:
    """The sort key of the leaderboard, larger is better; None: neither place nor rewards."""
    primary = card.primary_metric
    score: float | None = submission.scores.get(primary.name)
    if score is None or is_self_reported(card, submission):
        return None
    return score if primary.higher_is_better else -score


def is_self_reported(card: Card | None, submission: Submission) -> bool:
    """Whether a submission is not ranked because its task ranks only measured ones and baselines."""
    measured = submission.evaluation_id is not None or submission.baseline
    return card is not None and card.ranks_measured and not measured


def shown(
    card: Card | None,
    submission: Submission,
    scores: Mapping[str, float],
    uncertainties: Mapping[str, float] | None,
    warnings: list[str],
) -> dict[str, Any]:
    """The published scores; those of models are rounded to a tenth of their errors, without warnings.

    A model could encode hidden events in its predictions, and so in the digits of scores. Metrics that the
    platform has counted or measured are not rounded if they have no error.
    """
    if submission.evaluation_id is None:
        return {"scores": scores, "uncertainties": uncertainties, "warnings": warnings}
    errors = uncertainties or {}
    measured = {metric.name for metric in card.metrics if metric.self_reported} if card else set()
    floors = {name: 0 if name in measured else _SMALLEST_STEP for name in scores.keys() | errors.keys()}
    return {
        "scores": {
            name: _to_a_tenth(value, errors.get(name, 0), floors[name]) for name, value in scores.items()
        },
        "uncertainties": {
            name: published_error(error) if error >= floors[name] else 0.0 for name, error in errors.items()
        },
        "warnings": [],
    }


def published_error(error: float, digits: int = 2) -> float:
    """A standard error, rounded to significant digits: more of them would disclose single events."""
    return float(f"{error:.{digits - 1}e}")


def published_errors(errors: Mapping[str, float] | None) -> dict[str, float]:
    """Standard errors by metric as every record has them; rewards use the exact ones."""
    return {name: published_error(error) for name, error in (errors or {}).items()}


def with_measured_errors(
    card: Card, model: Mapping[str, Any] | None, evaluation: ScoringResult
) -> ScoringResult:
    """Return the scores with the error of the measurement for those of a speed that was measured."""
    if not model or not model.get("seconds"):
        return evaluation
    relative = model["seconds_error"] / model["seconds"]
    measured = {
        metric.name: abs(evaluation.metrics[metric.name]) * relative
        for metric in card.metrics
        if metric.self_reported and metric.name in evaluation.metrics
    }
    held_back = evaluation.held_back and with_measured_errors(card, model, evaluation.held_back)
    return replace(evaluation, uncertainties=evaluation.uncertainties | measured, held_back=held_back)


def _to_a_tenth(value: float, error: float, floor: float = 0) -> float:
    """Round to the largest of 1, 2 and 5 times a power of ten that is at most a tenth of the error.

    The step is at least ``floor``, absolute and relative, as a model may influence its error, too.
    """
    step = max(error / 10 if math.isfinite(error) else 0, floor * max(1, abs(value)))
    if step <= 0 or not math.isfinite(value):
        return value
    # Decimals neither overflow nor underflow for any float.
    wanted = Decimal(step) * (1 + Decimal("1e-9"))
    exponent = wanted.adjusted()
    unit = max(unit for unit in (1, 2, 5) if unit <= wanted.scaleb(-exponent))
    exact = Decimal(unit).scaleb(exponent)
    return float(round(Decimal(value) / exact) * exact)


async def keep(
    submission_id: str,
    card: Card,
    versions: tuple[str, ScoredTruth],
    evaluation: ScoringResult,
    *,
    scored_at: datetime,
    applied: bool = False,
) -> None:
    """Store the scores of a submission by a version of scorer and truth, unless they are stored already.

    Scores on events that are held back are stored, too, until these count. Raises Unavailable if the draws
    of standard errors were replaced meanwhile.
    """
    if await draw_seeds.find(card.name, versions[1]) != evaluation.replicates.seed:
        raise Unavailable("the task was scored again meanwhile; submit the file again", retry_after=1)
    if evaluation.held_back is not None and (final := versions[1].final) is not None:
        held_back = versions[0], final
        await keep(submission_id, card, held_back, evaluation.held_back, scored_at=scored_at)
    scoring = Scoring(
        submission_id=submission_id,
        scorer_version=versions[0],
        truth_version=versions[1],
        scores=evaluation.metrics,
        uncertainties=evaluation.uncertainties,
        replicates=dict(evaluation.replicates),
        seed=evaluation.replicates.seed,
        primary_draws=_primary_draws(card, evaluation.replicates),
        curves=[as_json(curve) for curve in evaluation.curves],
        warnings=[*evaluation.warnings, *evaluation.missing],
        scored_at=scored_at,
        applied_at=scored_at if applied else None,
    )
    await Scoring.bulk_create([scoring], ignore_conflicts=True)


@transactional
async def keep_alone(
    submission_id: str,
    card: Card,
    versions: tuple[str, ScoredTruth],
    evaluation: ScoringResult,
    *,
    scored_at: datetime,
) -> None:
    """As :func:`keep`, where no challenge is locked: the draws are not replaced meanwhile."""
    both = (versions[1], versions[1].held_back)
    await draw_seeds.lock(card.name, [version for version in both if version is not None])
    await keep(submission_id, card, versions, evaluation, scored_at=scored_at)


def _primary_draws(card: Card, replicates: Replicates) -> bytes | None:
    primary = card.primary_metric
    if primary.name not in replicates:
        return None
    sign = 1 if primary.higher_is_better else -1
    return (sign * np.asarray(replicates[primary.name])).astype(np.float32).tobytes()


async def keep_current(submissions: Iterable[Submission]) -> None:
    """Store the current scores of submissions from before scorings were stored."""
    found = [
        Scoring(
            submission_id=row.id,
            scorer_version=row.scorer_version,
            truth_version=row.truth_version,
            scores=row.scores,
            uncertainties=row.uncertainties,
            warnings=row.warnings,
            scored_at=row.submitted_at,
            applied_at=row.submitted_at,
        )
        for row in submissions
    ]
    await Scoring.bulk_create(found, ignore_conflicts=True)


async def scored(challenge: str, versions: tuple[str, str]) -> set[str]:
    """The submissions to a challenge that have scores by a version of scorer and truth."""
    return {row["submission_id"] for row in await rows_of(_SCORED, challenge, *versions)}


async def without_replicates(submission_ids: Sequence[str], versions: tuple[str, str]) -> dict[str, Scoring]:
    """The scores of a chunk of submissions by a version of scorer and truth, without the large columns."""
    rows = Scoring.filter(
        submission_id__in=submission_ids, scorer_version=versions[0], truth_version=versions[1]
    )
    small = "id", "submission_id", "scores", "uncertainties", "warnings", "applied_at"
    return {row.submission_id: row for row in await rows.only(*small)}


async def earlier(card: Card | None, submission: Submission) -> list[EarlierScores]:
    """The scores that counted before, latest first."""
    applied = Scoring.filter(submission_id=submission.id, applied_at__isnull=False).order_by("-applied_at")
    rows = await applied.only("id", *EarlierScores.__struct_fields__)
    current = submission.scorer_version, submission.truth_version
    return [
        _earlier(card, submission, row)
        for row in rows
        if (row.scorer_version, row.truth_version) != current
        # Scores on all events from before a split would reveal those on events held back.
        and not (submission.truth_version.is_public and row.truth_version == submission.truth_version.whole)
    ]


def _earlier(card: Card | None, submission: Submission, row: Scoring) -> EarlierScores:
    found = shown(card, submission, row.scores, row.uncertainties, [])
    errors = published_errors(found["uncertainties"])
    return EarlierScores.of(row, scores=found["scores"], uncertainties=errors)


async def curves_of(submission: Submission) -> tuple[BinnedScore, ...]:
    """The current scores in bins; none of models, which could encode hidden events in each bin."""
    if submission.evaluation_id is not None:
        return ()
    scoring = await Scoring.get_or_none(
        submission_id=submission.id,
        scorer_version=submission.scorer_version,
        truth_version=submission.truth_version,
    ).only("id", "curves")
    return msgspec.convert((scoring.curves if scoring else None) or (), tuple[BinnedScore, ...])


async def replicates_of(submission_id: str, scorer_version: str, truth_version: ScoredTruth) -> Replicates:
    """The metrics of resampled events, if any."""
    scoring = Scoring.get_or_none(
        submission_id=submission_id, scorer_version=scorer_version, truth_version=truth_version
    )
    found = await scoring.only("id", "replicates", "seed")
    return Replicates({}) if found is None else Replicates(found.replicates or {}, found.seed)


def storage_key(sha256: str) -> str:
    """The storage key of predictions, by their content."""
    return f"predictions/{sha256}.parquet"


async def stored_predictions() -> dict[str, str]:
    """SHA-256 of every file of predictions in the storage, by key; without those of erased accounts."""
    rows = await Submission.all().distinct().values_list("hub_username", "sha256")
    return {storage_key(str(sha256)): str(sha256) for name, sha256 in rows if not ERASED.fullmatch(str(name))}


async def score(
    platform: Platform,
    task: Task,
    truth_version: ScoredTruth,
    path: Path,
    sha256: str,
    extra_columns: ExtraColumns = "refuse",
    seeds: Seeds | None = None,
) -> ScoringResult:
    """Score a file within the time limit, by the seeds of the version unless others are given.

    Raises as :func:`~collidium.scoring.engine.evaluate`, and TooSlow. A file that was scored before can be
    decoded: that it now crashes workers or exceeds limits is ScoringInterrupted.
    """
    name = task.card.name
    with metrics.SCORING_NOW.track_inprogress(), metrics.SCORING.labels(name).time():
        try:
            seeds = seeds or await draw_seeds.of_scoring(name, truth_version)
            evaluation = await _score(platform, task, truth_version, path, sha256, extra_columns, seeds)
        except Undecodable as error:
            metrics.SCORING_FAILURES.labels(name, _cause(error)).inc()
            known = await Submission.exists(task=name, sha256=sha256)
            if known or await model_queue.has_predicted(name, sha256):
                raise ScoringInterrupted(
                    f"scoring for task {name} failed: {error}", retry_after=600
                ) from error
            raise
        except Exception as error:  # counted, and raised again
            metrics.SCORING_FAILURES.labels(name, _cause(error)).inc()
            raise
    metrics.SCORED_ROWS.labels(name).inc(evaluation.rows)
    return evaluation


def _cause(error: Exception) -> str:
    """The label of a failure in metrics."""
    if isinstance(error, InvalidInput):
        return "invalid"
    if isinstance(error, ScoringFailed):
        if isinstance(error.__cause__, OverLimit):
            return "limit"
        return "crash" if isinstance(error.__cause__, WorkerDied) else "task"
    return "time" if isinstance(error, TooSlow) else "other"


class TooSlow(Unavailable):
    """Scoring a file exceeded the time limit."""


def is_transient(error: Exception) -> bool:
    """Whether scoring failed because something is unavailable, so that a retry may succeed.

    What was too slow counts as tried, or it would be repeated for ever.
    """
    if isinstance(error, (TooSlow, ScoringFailed)):
        return False
    return isinstance(error, (StorageUnavailable, Unavailable))


async def _score(
    platform: Platform,
    task: Task,
    truth_version: ScoredTruth,
    path: Path,
    sha256: str,
    extra_columns: ExtraColumns,
    seeds: Seeds,
) -> ScoringResult:
    settings = platform.settings
    budget = asyncio.timeout(settings.evaluation_seconds)
    try:
        # The limit does not include fetching truth, which other files share.
        async with (
            registry.opened(platform, task.card.name, truth_version.whole) as truth,
            budget,
            _uploaded(platform, truth, path, sha256) as files,
        ):
            return await engine.evaluate(
                task,
                truth,
                path,
                executor=platform.executor,
                limits=settings.scoring_limits,
                extra_columns=extra_columns,
                part=truth_version,
                seeds=seeds,
                files=files,
            )
    except TimeoutError:
        if not budget.expired():
            raise
        raise TooSlow(
            f"scoring took longer than the limit of {settings.evaluation_seconds:g} s; write the file sorted "
            "by event in larger pages and row groups, or try again when the server is less busy",
            retry_after=600,
        ) from None


@asynccontextmanager
async def _uploaded(
    platform: Platform, truth: Truth, path: Path, sha256: str
) -> AsyncIterator[Mapping[Path, StoredFile] | None]:
    """Store predictions for other machines within the context, if the executor is remote."""
    if not platform.executor.is_remote:
        yield None
        return
    size = (await asyncio.to_thread(path.stat)).st_size
    predictions = StoredFile(f"uploads/{uuid.uuid4().hex}.parquet", size, sha256)
    await platform.storage.put(predictions.key, path)
    try:
        yield {path: predictions, **stored_files(truth)}
    finally:
        await _delete(platform.storage, predictions.key)


async def _delete(storage: Storage, key: str) -> None:
    """Delete a file for other machines; if that fails, again after the next scoring."""
    _UNDELETED.add(key)
    for left in list(_UNDELETED):
        try:
            await storage.delete(left)
        except StorageUnavailable as error:
            logger.warning("cannot delete %s from the storage yet: %s", left, error)
            break
        _UNDELETED.discard(left)
