"""Runs models of submissions again: on final events of a challenge, new hidden events, or public events.

A run is an evaluation in the same queue, for an existing submission. Its scores are stored in addition to
those that count. Scores on final events count with the final results, scores on new events at once, and
scores on public events never: they are for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tortoise.timezone import now

from collidium import accounts, challenges, operations, records
from collidium.challenges import gate
from collidium.database import transactional
from collidium.errors import Conflict
from collidium.model_runs import Evaluation, model_queue, model_reruns, model_runners
from collidium.runtime.failpoints import reached
from collidium.submissions import reading, replay, scores, submit
from collidium.submissions.models import Scoring, Submission
from collidium.submissions.replay import ReplayTarget
from collidium.submissions.rewards import RewardRules, reward_bests
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.platform import Platform
    from collidium.scoring.engine import ScoringResult


async def keep(
    platform: Platform, run: Evaluation, result: ScoringResult, predictions: str, model: Mapping[str, Any]
) -> None:
    """Store the scores of a submission's model on other events, and end its evaluation.

    ``predictions`` is the SHA-256 of its predictions, ``model`` its card. Raises LeaseLost, and Conflict if
    these events no longer count.
    """
    await _keep_once(platform, run, result, predictions, model)
    reached("evaluate.kept")


@transactional
async def _keep_once(
    platform: Platform, run: Evaluation, result: ScoringResult, predictions: str, model: Mapping[str, Any]
) -> None:
    challenge = await challenges.locked(run.challenge)
    task = platform.tasks.find(run.task)
    if not run.public and not model_queue.runs_on(challenge, run.truth_version):
        raise Conflict(f"{challenge.name} has final results, or no longer counts these events")
    await model_queue.held(run)
    submission = await Submission.select_for_update().get(id=run.submission_id)
    target = ReplayTarget(challenge.name, task, run.truth_version)
    await scores.keep(submission.id, task.card, target.versions, result, scored_at=now())
    if not run.public and run.truth_version == challenge.truth_version and target.needs_scores(submission):
        await gate.require_concealed(challenge, run.truth_version)
        submission.represents, submission.model = False, dict(model)
        await submission.save(update_fields=["represents", "model"])
        scorer_version, truth_version = target.versions
        scoring = await Scoring.get(
            submission_id=submission.id, scorer_version=scorer_version, truth_version=truth_version
        )
        await replay.apply_scores([submission], {submission.id: scoring}, target)
        await submit.represent(submission)
        # It raises the bests on these events without rewards: it was paid for older ones.
        floors = (await registry.find(run.task, run.truth_version)).floors
        rules = RewardRules.of(platform.settings, run.truth_version, rewarded=False)
        await reward_bests(task.card, submission, floors, result.replicates, rules)
        submission.raised_best = submission.raised_best or None  # unknown in the order of submission
        await submission.save()
        await challenges.bump_revision(challenge)
    await model_queue.mark_scored(run, submission.id, predictions, run.truth_version)
    reached("evaluate.again_kept")


@transactional
async def reproduce(platform: Platform, account: AccountView, submission_id: str) -> records.Evaluation:
    """Run the model of the account's submission on public events, for the price of a model.

    Idempotent: there is one run on these events, whatever its outcome. Raises NotFound, Forbidden for another
    account's submission, PaymentRequired, Unavailable if nothing runs models, and Conflict if it cannot run.
    """
    row = await reading.own_row(account, submission_id)
    public = await registry.public_of(row.task)
    if public is None:
        raise Conflict(f"the server has no public events of {row.task}")
    challenge = await challenges.locked(row.challenge)
    await accounts.require_not_banned(row.account_id)
    if await model_reruns.not_queued([row], public.version):
        await model_runners.require(row.challenge)
    price = Decimal(0) if row.baseline else platform.settings.model_price
    await model_reruns.queue(challenge, [row], public.version, timed_anew=False, public_for=price)
    run = await model_reruns.on_public_events(row.id, public.version)
    if run is None:
        raise Conflict("its model is no longer stored, or already scored on these events")
    return model_queue.view(run)


@transactional
async def refresh(
    platform: Platform, name: str, version: str, *, actor: str, http_request_id: str
) -> records.Challenge:
    """Replace the hidden events of an open challenge, and run its models on the new ones.

    ``version`` is an imported truth of its task with inputs of models. Scores on the older events are kept
    and shown as earlier ones; submitted files of predictions lose their ranks, as they are about older
    events. Raises NotFound, and Conflict.
    """
    challenge = await challenges.locked(name)
    if challenges.state_of(challenge, now()) not in ("open", "upcoming") or challenge.truth_version is None:
        raise Conflict(f"{name} is not open, or has no truth: its events cannot be replaced")
    new = await registry.find_whole(challenge.task, version)
    if not new.inputs:
        raise Conflict(f"the truth {version[:64]!r} was imported without inputs of models")
    if challenge.truth_version.whole == version:
        raise Conflict(f"{name} already counts the events of {version[:64]!r}")
    counts = new.version.like(challenge.truth_version)
    await gate.require_concealed(challenge, counts)
    rows = await Submission.filter(challenge=name, standing="ranked")
    await model_queue.drop(name)
    if counts.kind is None:
        challenge.truth_version = counts
    else:
        await challenges.set_part(challenge, counts)
    queued = await model_reruns.queue(challenge, rows, counts, timed_anew=True)
    await challenges.bump_revision(challenge, "truth_version", "changed_at")
    details = {"truth_version": counts, "models": queued}
    await operations.record(actor, "refresh_challenge", name, details, http_request_id)
    return challenges.view(challenge, platform)
