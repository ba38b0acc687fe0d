"""Operators verify what submitters measured themselves; only then it earns anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium import accounts, operations, records
from collidium.benchmarks.models import Challenge, Submission
from collidium.benchmarks.rewards import RewardRules, reward_bests
from collidium.benchmarks.submissions import reading, scorings
from collidium.benchmarks.truth import truth_versions
from collidium.database import transactional
from collidium.errors import Conflict, Forbidden

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.settings import Settings


async def verify(
    platform: Platform, submission_id: str, *, actor: str, http_request_id: str
) -> records.Submission:
    """Believe what a submission reports of itself, and pay for the bests that it thereby holds.

    Done once, however often it is asked for. What is not on the leaderboard of today raises no best and
    earns nothing. Raises NotFound, and Conflict where there is nothing to verify or the account is banned.
    """
    row = await reading.row_of(submission_id)
    task = platform.tasks.find(row.task)
    if task.card.ranks_measured:
        raise Conflict(f"task {row.task!r} ranks what the platform measures: nothing is to be verified")
    if not any(metric.self_reported for metric in task.card.metrics):
        raise Conflict(f"task {row.task!r} has no self-reported metric: there is nothing to verify")
    await _verify_once(platform.settings, task, row, actor, http_request_id)
    return await reading.find(platform, submission_id)


@transactional
async def _verify_once(
    settings: Settings, task: Task, row: Submission, actor: str, http_request_id: str
) -> None:
    # The challenge's row first, as wherever bests are decided.
    challenge = await Challenge.select_for_update().get(name=row.challenge)
    submission = await Submission.select_for_update().get(id=row.id)
    if submission.verified_at is not None:
        return
    try:
        await accounts.require_not_banned(submission.account_id)
    except Forbidden as error:
        raise Conflict(f"{submission.hub_username}: {error.detail}") from error
    submission.verified_at = now()
    if submission.truth_version == challenge.truth_version:
        versions = submission.scorer_version, submission.truth_version
        floors = (await truth_versions.find(task.card.name, submission.truth_version)).floors
        rules = RewardRules.of(settings, submission.truth_version, rewarded=challenge.rewarded)
        replicates = await scorings.replicates_of(row.id, *versions)
        submission.credits_earned += await reward_bests(task.card, submission, floors, replicates, rules)
    await submission.save(update_fields=["verified_at", "credits_earned"])
    challenge.revision += 1
    await challenge.save(update_fields=["revision"])
    details = {"task": submission.task, "credits_earned": str(submission.credits_earned)}
    await operations.record(actor, "verify", row.id, details, http_request_id)
