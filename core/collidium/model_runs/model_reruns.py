"""Queues models of submissions again: on final events, on new hidden events, or on public events.

What becomes of the scores is :mod:`collidium.submissions.reruns`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium.database import in_chunks
from collidium.inference.messages import Code
from collidium.model_runs import model_queue
from collidium.model_runs.models import Evaluation
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.challenges import Challenge
    from collidium.scoring.truth.parts import ScoredTruth
    from collidium.submissions.models import Submission


async def predictions_on(truth_version: ScoredTruth, submission_ids: Iterable[str]) -> dict[str, Evaluation]:
    """By submission, the scored evaluation that ran its model on all of these events."""
    versions = (truth_version, truth_version.whole)
    scored = Evaluation.filter(truth_version__in=versions, state="scored")
    return {
        str(row.submission_id): row
        for ids in in_chunks(submission_ids)
        for row in await scored.filter(submission_id__in=ids)
    }


async def not_queued(rows: Iterable[Submission], truth_version: ScoredTruth) -> list[Submission]:
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


async def has_run(challenge: str, truth_version: ScoredTruth) -> bool:
    """Whether models of submissions to a challenge were queued for these events."""
    return await Evaluation.exists(challenge=challenge, again=True, truth_version=truth_version)


async def why_not_run(submission_id: str, truth_version: ScoredTruth) -> tuple[str, bool | None]:
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
    truth_version: ScoredTruth,
    *,
    timed_anew: bool,
    public_for: Decimal | None = None,
) -> int:
    """Queue the models of submissions, in a transaction that has locked the challenge; returns how many.

    Each is run once on these events. With ``timed_anew`` its speed is measured again. ``public_for`` is the
    price of a run on public events; None for hidden events. Raises PaymentRequired.
    """
    events = (await registry.find(challenge.task, truth_version.whole)).events
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
                "events": sum(map(len, truth_version.events_of(events))),
                "events_done": 0,
                "timed": [] if timed_anew else first.timed,
                "price": Decimal(0),
            }
        )
        await model_queue.charge(again, public_for or Decimal(0))
        await model_queue.enqueue(again)
        await again.save(force_create=True)
    return len(wanted)


async def on_public_events(submission_id: str, truth_version: ScoredTruth | None = None) -> Evaluation | None:
    """The last run of a submission's model on public events, or on these; None if there is none."""
    runs = Evaluation.filter(submission_id=submission_id, public=True)
    if truth_version is not None:
        runs = runs.filter(truth_version=truth_version)
    return await runs.order_by("-received_at").first()
