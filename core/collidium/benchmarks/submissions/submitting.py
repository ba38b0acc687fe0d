"""Submissions: predictions that were scored, kept once per account and file, rewarded in one transaction."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tortoise.exceptions import IntegrityError
from tortoise.timezone import now

from collidium import accounts, records
from collidium.benchmarks import quotas
from collidium.benchmarks.models import ListedTask, Submission
from collidium.benchmarks.rewards import RewardRules, reward_bests
from collidium.benchmarks.submissions import links, prediction_files, scorings
from collidium.benchmarks.tasks import tasklist
from collidium.benchmarks.truth import truth_versions
from collidium.database import transactional
from collidium.errors import Conflict, Forbidden, NotFound, Unavailable
from collidium.scoring.predictions import ExtraColumns, largest

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.benchmarks.submissions.links import CheckClaim, Claim
    from collidium.benchmarks.truth.truth_versions import TruthRecord
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.scoring.engine import Evaluation
    from collidium.settings import Settings

logger = logging.getLogger(__name__)

SUBMISSION_ID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file of predictions that was received."""

    path: Path
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a submission; ``deduplicated`` when this account sent the same file before."""

    submission: records.Submission
    deduplicated: bool


async def largest_file(platform: Platform, task_name: str) -> int:
    """Bytes that predictions for a task may have, by the settings and by the rows of its truth.

    Raises NotFound and Unavailable for a task that takes no submissions.
    """
    task, truth_version = await tasklist.accepting(platform, task_name)
    return largest_against(task, await truth_versions.find(task_name, truth_version), platform.settings)


def largest_against(task: Task, truth: TruthRecord, settings: Settings) -> int:
    """The same for truth that is known already."""
    rows = truth.rows[task.card.rows_of]
    return min(settings.max_submission_bytes, largest(rows, len(task.card.columns), rows))


async def check(
    platform: Platform, account: AccountView, task_name: str, predictions: Predictions
) -> Evaluation:
    """Score without keeping anything. Raises InvalidInput with every problem found, and Forbidden."""
    task, truth_version = await tasklist.accepting(platform, task_name)
    await accounts.require_not_banned(account.id)
    return await prediction_files.score(platform, task, truth_version, predictions.path)


async def submit(
    platform: Platform,
    account: AccountView,
    task_name: str,
    predictions: Predictions,
    *,
    check_claim: CheckClaim,
    model_repo: str | None = None,
    extra_columns: ExtraColumns = "refuse",
) -> Outcome:
    """Score predictions, keep them, and pay for new bests.

    The same file by the same account returns its first submission, linked to the model if none was linked
    yet. Raises InvalidInput with every problem found, Conflict where that is linked to another model,
    Forbidden for an account that was banned meanwhile, and TooManyRequests past the day's quota; then
    nothing was written.
    """
    links.validated({"model_repo": model_repo})
    task, truth_version = await tasklist.accepting(platform, task_name)
    submission = Submission(
        id=uuid.uuid4().hex,
        task=task_name,
        account_id=account.id,
        hub_username=account.hub_username,
        sha256=predictions.sha256,
        size_bytes=predictions.size_bytes,
        model_repo=model_repo,
        scorer_version=task.version,
        truth_version=truth_version,
    )
    await accounts.require_not_banned(account.id)
    first = await _same_file(submission)
    if model_repo is not None and (first is None or first.model_repo is None):
        submission.model_claim = await check_claim(model_repo) or "unverified"
    if first is not None:
        return await _again(first, submission)
    per_day = platform.settings.submissions_per_day
    await quotas.require_submission_left(account.id, task_name, per_day, now())
    evaluation = await prediction_files.score(platform, task, truth_version, predictions.path, extra_columns)
    await accounts.require_not_banned(account.id)
    # Before the transaction and named by content: a kill in between leaves a file that the retry adopts.
    await platform.storage.put(prediction_files.storage_key(predictions.sha256), predictions.path)
    outcome = await _keep(platform, task, submission, evaluation)
    if not outcome.deduplicated:
        platform.plugins.announce(
            "collidium_submission_scored", submission=records.as_json(outcome.submission)
        )
    return outcome


async def find(submission_id: str) -> records.Submission:
    """The submission of that id; raises NotFound."""
    row = await _row(submission_id)
    truth = await truth_versions.find(row.task, row.truth_version)
    return view(row, truth, await scorings.earlier(row))


async def set_links(
    account: AccountView,
    submission_id: str,
    changes: Mapping[str, str | None],
    check_claim: CheckClaim,
) -> records.Submission:
    """Set or, by None, remove links of one's own submission; those that are not named stay.

    A model that is named is checked, also where it is the one that is linked already. Raises InvalidInput
    with every problem found, NotFound, and Forbidden for another account's submission.
    """
    kept = links.validated(changes)
    row = await _row(submission_id)
    if row.account_id != account.id:
        raise Forbidden(f"submission {submission_id} is of {row.hub_username}, who alone can set its links")
    if "model_repo" in kept:
        repo = kept["model_repo"]
        claim = None if repo is None else await check_claim(repo)
        if repo is None or claim is not None or repo != row.model_repo:
            # A claim that was verified stays so while the hub is away.
            kept["model_claim"] = claim if repo is None else claim or "unverified"
    if kept:
        await _link_once(row, kept)
    return await find(submission_id)


@transactional
async def _link_once(submission: Submission, changes: Mapping[str, str | None]) -> None:
    listed = await ListedTask.select_for_update().get(name=submission.task)
    await accounts.require_not_banned(submission.account_id)
    await _link(listed, await Submission.select_for_update().get(id=submission.id), changes)


async def _link(listed: ListedTask, submission: Submission, changes: Mapping[str, str | None]) -> None:
    """Write links within a transaction that has locked both rows."""
    model = submission.model_repo, submission.model_claim
    submission.update_from_dict(dict(changes))
    await submission.save(update_fields=list(changes))
    if model != (submission.model_repo, submission.model_claim):  # what leaderboards show
        listed.revision += 1
        await listed.save(update_fields=["revision"])


async def _row(submission_id: str) -> Submission:
    row = None
    if SUBMISSION_ID.fullmatch(submission_id):
        row = await Submission.get_or_none(id=submission_id)
    if row is None:
        raise NotFound(f"there is no submission {submission_id[:100]!r}")
    return row


async def _keep(platform: Platform, task: Task, submission: Submission, evaluation: Evaluation) -> Outcome:
    truth = await truth_versions.find(task.card.name, submission.truth_version)
    try:
        return await _keep_once(platform, task, submission, evaluation, truth)
    except IntegrityError:
        # Another request of this account kept the same file first: theirs is the submission.
        first = await _same_file(submission)
        if first is None:
            raise
        return await _again(first, submission)


@transactional
async def _keep_once(
    platform: Platform,
    task: Task,
    submission: Submission,
    evaluation: Evaluation,
    truth: TruthRecord,
) -> Outcome:
    # The task's row first, then the account's, as everywhere: nobody waits in a circle.
    listed = await ListedTask.select_for_update().get(name=submission.task)
    await accounts.require_not_banned(submission.account_id)
    if not listed.listed or listed.truth_version != submission.truth_version:
        raise Unavailable("the task changed while the file was scored; submit it again", retry_after=1)
    if first := await _same_file(submission):
        return await _again(first, submission)
    settings = platform.settings
    submission.submitted_at = now()
    await quotas.require_submission_left(
        submission.account_id, submission.task, settings.submissions_per_day, submission.submitted_at
    )
    submission.rows = evaluation.rows
    submission.scores = evaluation.metrics
    submission.uncertainties = evaluation.uncertainties
    submission.rank_score = scorings.rank_score(task.card, evaluation.metrics)
    submission.warnings = [*evaluation.warnings, *evaluation.missing]
    rules = RewardRules.of(settings, submission.truth_version)
    submission.credits_earned = await reward_bests(
        task.card, submission, truth.floors, evaluation.replicates, rules
    )
    await submission.save(force_create=True)
    versions = submission.scorer_version, submission.truth_version
    await scorings.keep(submission.id, versions, evaluation, scored_at=submission.submitted_at, applied=True)
    listed.revision += 1
    await listed.save(update_fields=["revision"])
    return Outcome(view(submission, truth), deduplicated=False)


@transactional
async def _again(first: Submission, again: Submission) -> Outcome:
    """The answer to the same file once more, which links its model where none is linked.

    Raises Conflict where another one is.
    """
    if again.model_repo not in {None, first.model_repo}:
        listed = await ListedTask.select_for_update().get(name=first.task)
        await accounts.require_not_banned(first.account_id)
        first = await Submission.select_for_update().get(id=first.id)
        if first.model_repo is None:
            await _link(listed, first, {"model_repo": again.model_repo, "model_claim": again.model_claim})
        elif first.model_repo != again.model_repo:
            raise Conflict(
                f"this file is submission {first.id}, which is linked to the model {first.model_repo}; "
                f"change that link instead (PATCH /v1/submissions/{first.id})"
            )
    return Outcome(view(first), deduplicated=True)


async def _same_file(submission: Submission) -> Submission | None:
    return await Submission.get_or_none(
        account_id=submission.account_id,
        task=submission.task,
        sha256=submission.sha256,
        scorer_version=submission.scorer_version,
        truth_version=submission.truth_version,
    )


def view(
    row: Submission, truth: TruthRecord | None = None, earlier: Sequence[records.EarlierScores] = ()
) -> records.Submission:
    """What everybody may see of a row."""
    return records.Submission.of(
        row,
        **derived(row),
        warnings=tuple(row.warnings),
        dataset=truth.dataset if truth else None,
        dataset_revision=truth.revision if truth else None,
        earlier_scores=tuple(earlier),
    )


def derived(row: Submission) -> dict[str, Any]:
    """The fields of records that a row has under another name, or may lack."""
    return {
        "submission_id": row.id,
        "uncertainties": row.uncertainties or {},
        "model_claim": claim_of(row),
    }


def claim_of(row: Submission) -> Claim | None:
    """The state of a row's claim to its model; None where it has none."""
    return None if row.model_repo is None else cast("Claim", row.model_claim or "unverified")
