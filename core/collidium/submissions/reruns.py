"""Runs models of submissions again: on final events of a challenge, new hidden events, or public events.

A run is an evaluation in the same queue, for an existing submission. Its scores are stored in addition to
those that count. Scores on final events count with the final results, scores on new events at once, and
scores on public events never: they are for comparison.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tortoise.timezone import now

from collidium import accounts, challenges, operations, records
from collidium.challenges import Challenge, gate
from collidium.database import in_chunks, transactional
from collidium.errors import Conflict
from collidium.inference.messages import Code
from collidium.model_runs import model_queue, model_runners
from collidium.model_runs.models import Evaluation
from collidium.runtime.failpoints import reached
from collidium.scoring.truth.parts import Part, events_of, whole
from collidium.submissions import reading, replay, scores, submit
from collidium.submissions.models import Scoring, Submission
from collidium.submissions.replay import ReplayTarget
from collidium.submissions.rewards import RewardRules, reward_bests
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.platform import Platform
    from collidium.scoring.engine import ScoringResult


async def predictions_on(truth_version: str, submission_ids: Iterable[str]) -> dict[str, Evaluation]:
    """By submission, the scored evaluation that ran its model on all of these events."""
    versions = (truth_version, whole(truth_version))
    scored = Evaluation.filter(truth_version__in=versions, state="scored")
    return {
        str(row.submission_id): row
        for ids in in_chunks(submission_ids)
        for row in await scored.filter(submission_id__in=ids)
    }


async def not_queued(rows: Iterable[Submission], truth_version: str) -> list[Submission]:
    """The submissions of ``rows`` whose models are not queued for these events yet."""
    models = [row for row in rows if row.evaluation_id is not None]
    done = await predictions_on(truth_version, [row.id for row in models])
    known, kept = set(done), set[str]()
    for some in in_chunks(models):
        queued = Evaluation.filter(
            submission_id__in=[row.id for row in some], again=True, truth_version=truth_version
        )
        known.update(str(id_) for id_ in await queued.values_list("submission_id", flat=True))
        first = Evaluation.filter(id__in=[row.evaluation_id for row in some]).exclude(manifest="")
        kept.update(str(id_) for id_ in await first.values_list("id", flat=True))
    return [row for row in models if row.id not in known and row.evaluation_id in kept]


async def has_run(challenge: str, truth_version: str) -> bool:
    """Whether models of submissions to a challenge were queued for these events."""
    return await Evaluation.exists(challenge=challenge, again=True, truth_version=truth_version)


async def why_not_run(submission_id: str, truth_version: str) -> tuple[str, bool | None]:
    """Why there are no predictions of a model for these events, and whether the platform is at fault.

    None: its run has not ended.
    """
    run = await Evaluation.get_or_none(submission_id=submission_id, again=True, truth_version=truth_version)
    if run is None:
        return "its model was not run on these events", False
    if run.code is None:
        return f"its run on these events is {run.state}", None
    reason = model_queue.REASONS.get(run.code) or Code(run.code).text
    return f"its model failed on these events: {reason}", run.code in model_queue.FREE_AT_FIRST


async def queue(
    challenge: Challenge,
    rows: Iterable[Submission],
    truth_version: str,
    *,
    timed_anew: bool,
    public_for: Decimal | None = None,
) -> int:
    """Queue the models of submissions, in a transaction that has locked the challenge; returns how many.

    Each is run once on these events. With ``timed_anew`` its speed is measured again. ``public_for`` is the
    price of a run on public events; None for hidden events. Raises PaymentRequired.
    """
    events = (await registry.find(challenge.task, whole(truth_version))).events
    wanted = await not_queued(rows, truth_version)
    for submission in wanted:
        first = await Evaluation.get(id=submission.evaluation_id)
        again = first.clone(pk=uuid.uuid4().hex)
        again.update_from_dict(
            {
                "again": True,
                "public": public_for is not None,
                "hub_username": submission.hub_username,
                "participant": submission.participant,
                "submission_id": submission.id,
                "truth_version": truth_version,
                "state": "received",
                "code": None,
                "detail": "",
                "received_at": now(),
                **dict.fromkeys(("checking_at", "running_at", "ended_at", "predictions")),
                "events": sum(map(len, events_of(truth_version, events))),
                "events_done": 0,
                "timed": [] if timed_anew else first.timed,
                "price": Decimal(0),
            }
        )
        await model_queue.charge(again, public_for or Decimal(0))
        await model_queue.enqueue(again)
        await again.save(force_create=True)
    return len(wanted)


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
    if await not_queued([row], public.version):
        await model_runners.require(row.challenge)
    price = Decimal(0) if row.baseline else platform.settings.model_price
    await queue(challenge, [row], public.version, timed_anew=False, public_for=price)
    run = await Evaluation.get_or_none(submission_id=row.id, public=True, truth_version=public.version)
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
    if whole(challenge.truth_version) == version:
        raise Conflict(f"{name} already counts the events of {version[:64]!r}")
    part = Part.of(challenge.truth_version)
    await gate.require_concealed(
        challenge, version if part is None else str(Part(version, part.kind, part.public_percent))
    )
    rows = await Submission.filter(challenge=name, standing="ranked")
    await model_queue.drop(name)
    if part is None:
        challenge.truth_version = version
    else:
        await challenges.set_part(challenge, Part(version, part.kind, part.public_percent))
    queued = await queue(challenge, rows, challenge.truth_version, timed_anew=True)
    await challenges.bump_revision(challenge, "truth_version", "changed_at")
    details = {"truth_version": challenge.truth_version, "models": queued}
    await operations.record(actor, "refresh_challenge", name, details, http_request_id)
    return challenges.view(challenge, platform)
