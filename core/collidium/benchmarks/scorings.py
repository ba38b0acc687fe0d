"""What each scorer made of a submission, kept with its versions: no later score replaces an earlier one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from collidium.benchmarks.models import Scoring, Submission
from collidium.benchmarks.uncertainty import Replicates

if TYPE_CHECKING:
    from collidium.benchmarks.engine import Evaluation


async def keep(
    submission: Submission, evaluation: Evaluation, scored_at: datetime, *, applied_at: datetime | None
) -> Scoring:
    """Keep what the scorer and the truth that ``submission`` names made of its file."""
    return await Scoring.create(
        submission_id=submission.id,
        scorer_version=submission.scorer_version,
        truth_version=submission.truth_version,
        scores=evaluation.metrics,
        uncertainties=evaluation.uncertainties,
        replicates=evaluation.replicates,
        warnings=list(evaluation.warnings),
        scored_at=scored_at,
        applied_at=applied_at,
    )


async def replicates_of(submission_id: str, scorer_version: str, truth_version: str) -> Replicates:
    """Metrics of resampled events; empty where there are none."""
    scoring = await Scoring.get_or_none(
        submission_id=submission_id, scorer_version=scorer_version, truth_version=truth_version
    )
    return (scoring.replicates if scoring else None) or {}
