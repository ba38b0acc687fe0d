"""Evaluations of models: their queue, their states and their leases.

A process leases an evaluation by :func:`claim`. Every change checks the lease; without it nothing is changed.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from tortoise.expressions import Q
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium import accounts, challenges, operations, records
from collidium.challenges import Challenge, Participant, arrivals
from collidium.database import on_commit, transactional
from collidium.database.leases import Leases
from collidium.errors import Conflict, NotFound, UnknownCursor
from collidium.inference.manifest import summary
from collidium.inference.messages import Code
from collidium.model_runs.models import Evaluation
from collidium.runtime import metrics
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import WakeSignal

if TYPE_CHECKING:
    from decimal import Decimal

    from collidium.scoring.truth.parts import ScoredTruth


LEASES: Final = Leases(Evaluation, "due_at", unended=Q(turn__gte=0))
#: Notified when this process has queued one.
RECEIVED: Final = WakeSignal()
#: How long the end of a challenge waits for an evaluation.
WAITED_FOR: Final = timedelta(days=3)
#: Maximum number of processes lost during one step.
ATTEMPTS: Final = 3
#: An account's other evaluations in this period determine its turn.
_RECENT: Final = timedelta(days=1)
_EVALUATION_ID: Final = re.compile(r"[0-9a-f]{32}")
_STEPS: Final = 10
#: The code after errors of the task, the scoring or the machine in each attempt.
PLATFORM_FAILED: Final = "platform_failed"
#: Codes of failures that are refunded.
_PLATFORMS_FAULT: Final = frozenset({"interrupted", PLATFORM_FAILED, "closed", Code.NOISY.value})
#: Codes of failures that do not count towards the quota at first, and how many of them do not, of each
#: participant, challenge and day: a model that takes the machine's memory looks like a machine that has none.
FREE_AT_FIRST: Final = frozenset({"interrupted", PLATFORM_FAILED})
FREE_FAILURES: Final = 3

#: Reasons of failures in addition to :class:`~collidium.inference.messages.Code`.
REASONS: Final[Mapping[str, str]] = {
    "interrupted": "The platform was interrupted too often; submit the model again.",
    PLATFORM_FAILED: "The platform failed to score it. Submit the model again: "
    f"{FREE_FAILURES} such failures a day are free.",
    "not_scored": "The predictions cannot be scored.",
    "closed": "The challenge accepted no more submissions when the model had been run.",
    "banned": "The account is banned.",
}


# -- for owners and operators --------------------------------------------------------------------------


async def find(evaluation_id: str, account_id: int | None = None) -> Evaluation:
    """An evaluation of an account (None: any account); raises NotFound."""
    row = None
    if _EVALUATION_ID.fullmatch(evaluation_id):
        row = await Evaluation.get_or_none(id=evaluation_id)
    if row is None or account_id not in {None, row.account_id}:
        raise NotFound(f"there is no evaluation {evaluation_id[:100]!r} of yours")
    return row


async def list_evaluations(
    *, limit: int, account_id: int | None = None, after: str | None = None, state: str | None = None
) -> list[records.Evaluation]:
    """Up to ``limit`` evaluations, newest first, those after the one named ``after``."""
    query = Evaluation.all() if account_id is None else Evaluation.filter(account_id=account_id)
    if state is not None:
        query = query.filter(state=state)
    if after is not None:
        try:
            last = await find(after, account_id)
        except NotFound:
            raise UnknownCursor from None
        query = query.filter(
            Q(received_at__lt=last.received_at) | Q(received_at=last.received_at, id__lt=last.id)
        )
    of_operators = account_id is None
    rows = await query.order_by("-received_at", "-id").limit(limit)
    return [view(row, of_operators=of_operators) for row in rows]


def view(row: Evaluation, *, of_operators: bool = False) -> records.Evaluation:
    """The record of a row, with progress in tenths and times in minutes, as models control their timing."""
    tenths = row.events_done * _STEPS // max(row.events, 1)
    times = {name: getattr(row, name) for name in ("checking_at", "running_at", "ended_at")}
    text = ""
    if row.code:
        text = REASONS.get(row.code) or Code(row.code).text
    return records.Evaluation.of(
        row,
        evaluation_id=row.id,
        model_sha256=row.sha256,
        model_bytes=row.size_bytes,
        events_done=tenths * row.events // _STEPS,
        **{
            name: time and max(time.replace(second=0, microsecond=0), row.received_at)
            for name, time in times.items()
        },
        reason=f"{text} {row.detail}".strip() or None,
        n_params=(row.facts or {}).get("n_params"),
        machine=(row.machine or None) if of_operators else None,
    )


async def graph_of(evaluation_id: str | None) -> records.ModelGraph | None:
    """The operators, inputs and outputs of a model; None if its manifest is no longer stored."""
    row = await Evaluation.get_or_none(id=evaluation_id)
    if row is None or not row.manifest or row.facts is None:
        return None
    return records.ModelGraph(operators=row.facts["operators"], **summary(row.manifest.encode()))


@transactional
async def cancel(row: Evaluation) -> Evaluation:
    """Cancel an evaluation that has not ended; raises Conflict."""
    row = await locked(row)
    if row.turn is None:
        raise Conflict(f"the evaluation has ended: it is {row.state}")
    await _end(row, "cancelled")
    return row


@transactional
async def operate(
    evaluation_id: str, action: Literal["cancel", "rerun"], *, actor: str, http_request_id: str
) -> records.Evaluation:
    """Cancel any evaluation, or run it again. Raises NotFound and Conflict."""
    row = await find(evaluation_id)
    row = await (cancel(row) if action == "cancel" else _rerun(row))
    await operations.record(actor, f"{action}_evaluation", row.id, {"state": row.state}, http_request_id)
    return view(row, of_operators=True)


async def _rerun(row: Evaluation) -> Evaluation:
    """Queue a failed or cancelled evaluation again, without another charge; raises Conflict."""
    challenge = await challenges.locked(row.challenge)
    row = await locked(row)
    if row.state not in ("failed", "cancelled"):
        raise Conflict(f"the evaluation is {row.state}")
    if not row.manifest:
        raise Conflict("the file of the model is no longer stored")
    if row.again and not row.public and not runs_on(challenge, row.truth_version):
        raise Conflict(f"{row.challenge} has final results, or no longer counts these events")
    await run_again(row)
    return row


async def run_again(row: Evaluation) -> None:
    """Queue a locked evaluation again, within a transaction that has locked its challenge."""
    row.state, row.code, row.detail, row.ended_at, row.events_done = "received", None, "", None, 0
    row.checking_at = row.running_at = None
    if not row.again:
        row.timed = []
    await enqueue(row)
    await row.save()


def runs_on(challenge: Challenge, truth_version: ScoredTruth) -> bool:
    """Whether a challenge still runs models on these events, which it counts or holds back."""
    counts = challenge.truth_version
    return challenge.ended_at is None and truth_version in {counts, counts.final if counts else None}


async def received_since(
    moment: datetime, challenge: str, participants: Collection[Participant], account_ids: Collection[int]
) -> list[tuple[Participant, int, str | None]]:
    """Participant, account and code of failure of what these sent to a challenge, without runs again."""
    own = Q(participant__in=list(participants)) | Q(account_id__in=list(account_ids))
    rows = Evaluation.filter(own, challenge=challenge, received_at__gte=moment, again=False)
    return await rows.values_list("participant", "account_id", "code")


async def failed_with(code: str, before: datetime) -> list[Evaluation]:
    """The evaluations that failed with a code before a moment, in the order of receipt."""
    failed = Evaluation.filter(state="failed", code=code, ended_at__lt=before)
    return await failed.order_by("received_at", "id")


async def same_as(row: Evaluation) -> Evaluation | None:
    """The evaluation of the same model for the same events, unless it failed or was cancelled."""
    same = Evaluation.filter(
        account_id=row.account_id,
        challenge=row.challenge,
        sha256=row.sha256,
        manifest=row.manifest,
        scorer_version=row.scorer_version,
        truth_version=row.truth_version,
        again=False,
    )
    return await same.exclude(state__in=["failed", "cancelled"]).first()


async def blame_platform(row: Evaluation) -> None:
    """Change the verdict of a locked evaluation that failed: the platform was at fault."""
    row.code = PLATFORM_FAILED
    await row.save(update_fields=["code"])


async def has_predicted(task: str, sha256: str) -> bool:
    """Whether a model has made these predictions."""
    return await Evaluation.exists(task=task, predictions=sha256)


async def was_received(model_repo: str, scorer_version: str, truth_version: str) -> bool:
    """Whether a model of a repository was received for a scorer and truth, and not cancelled."""
    found = Evaluation.filter(
        model_repo=model_repo, scorer_version=scorer_version, truth_version=truth_version
    )
    return await found.exclude(state="cancelled").exists()


async def forget(account_id: int, becomes: str) -> None:
    """Cancel and rename the evaluations of an erased account, within a transaction."""
    await accounts.lock({account_id})
    for row in await Evaluation.filter(account_id=account_id, turn__isnull=False).select_for_update():
        await _end(row, "cancelled")
    await Evaluation.filter(account_id=account_id).update(
        hub_username=becomes, manifest="", model_repo=None, model_claim=None
    )


# -- the queue -----------------------------------------------------------------------------------------


async def charge(row: Evaluation, price: Decimal) -> None:
    """Charge the price of an unsaved row, within a transaction; raises PaymentRequired."""
    if price:
        row.price, note = price, f"model for {row.challenge}"
        await accounts.post(row.account_id, -price, reason="evaluation_charge", reference=row.id, note=note)


async def enqueue(row: Evaluation) -> None:
    """Queue an unsaved row, within a transaction; the end of its challenge waits for it if it may count."""
    moment = now()
    recent = Evaluation.filter(
        account_id=row.account_id, challenge=row.challenge, received_at__gt=moment - _RECENT
    )
    row.turn, row.due_at, row.lease, row.attempts = await recent.count(), moment, "", 0
    on_commit(RECEIVED.notify)
    if row.public:
        return
    await arrivals.end(row.id)
    await arrivals.begin(row.id, row.challenge, moment + WAITED_FOR, row.received_at)


async def claim(last_turns: Mapping[str, int], seconds: float) -> Evaluation | None:
    """Lease the next evaluation for this many seconds.

    It is taken from the challenge whose last turn was longest ago (``last_turns``: an increasing number), and
    there from the account with the fewest evaluations in a day; then the oldest.
    """
    names = await _due().distinct().values_list("challenge", flat=True)
    if not names:
        return None
    row = await _claim(min(map(str, names), key=lambda name: (last_turns.get(name, 0), name)), seconds)
    if row is not None and row.attempts > ATTEMPTS:
        await mark_failed(row, "interrupted")
        return None
    return row


@transactional
async def _claim(challenge: str, seconds: float) -> Evaluation | None:
    due = _due().filter(challenge=challenge).order_by("turn", "received_at")
    row = await due.select_for_update(skip_locked=True).first()
    if row is None:
        return None
    # Not by claim: what is set depends on the row.
    fields: dict[str, Any] = {"attempts": row.attempts + 1, "machine": socket.gethostname()[:64]}
    if row.state == "received":
        fields |= {"state": "checking", "checking_at": now()}
    await LEASES.take([row], now() + timedelta(seconds=seconds), **fields)
    return row


def _due() -> QuerySet[Evaluation]:
    return Evaluation.filter(turn__gte=0, due_at__lte=now())


# -- for the holder of the lease -----------------------------------------------------------------------


async def renew(row: Evaluation, seconds: float, events_done: int) -> None:
    """Renew the lease, and record progress; raises LeaseLost."""
    await LEASES.renew(row, now() + timedelta(seconds=seconds), events_done=events_done)


async def give_back(row: Evaluation, after: timedelta = timedelta(0), *, tried: bool) -> None:
    """Release the lease for a later attempt; ``tried``: this attempt counts. Raises LeaseLost."""
    attempts = row.attempts if tried else row.attempts - 1
    await LEASES.release(row, now() + after, attempts=attempts, events_done=0)


async def mark_running(row: Evaluation, facts: Mapping[str, Any]) -> None:
    """Record that the model was checked; raises LeaseLost."""
    await LEASES.change(row, state="running", running_at=now(), facts=dict(facts), attempts=1)


async def mark_timed(row: Evaluation, timed: Sequence[Mapping[str, Any]]) -> None:
    """Record the measured blocks of time; raises LeaseLost."""
    await LEASES.change(row, timed=list(timed), attempts=1)


@transactional
async def mark_failed(row: Evaluation, code: str, detail: str = "") -> None:
    """End the evaluation without scores; raises LeaseLost."""
    printable = "".join(character if character.isprintable() else " " for character in detail[:500])
    await _end(await held(row), "failed", code=code, detail=printable)
    on_commit(metrics.MODELS_FAILED.labels(row.task, code).inc)
    reached("evaluate.failed")


@transactional
async def mark_scored(row: Evaluation, submission_id: str, predictions: str, truth_version: str) -> None:
    """End the evaluation in the transaction that keeps its submission; raises LeaseLost."""
    kept = {"submission_id": submission_id, "predictions": predictions, "truth_version": truth_version}
    await _end(await held(row), "scored", **kept, events_done=row.events)


@transactional
async def drop(challenge: str) -> None:
    """Cancel runs of a challenge's models on other hidden events, within a transaction."""
    counting = Evaluation.filter(challenge=challenge, again=True, public=False, turn__gte=0)
    for row in await counting.select_for_update():
        await _end(row, "cancelled")


async def held(row: Evaluation) -> Evaluation:
    """Lock the row of a leased evaluation, within a transaction; raises LeaseLost."""
    # Lock order: the account before the evaluation, whose end may refund credits.
    await accounts.lock({row.account_id})
    return await LEASES.held(row)


async def locked(row: Evaluation) -> Evaluation:
    """Lock an evaluation after its account, which its end may refund; within a transaction."""
    await accounts.lock({row.account_id})
    return await Evaluation.select_for_update().get(id=row.id)


async def _end(row: Evaluation, state: str, **fields: Any) -> None:
    row.update_from_dict({"state": state, "ended_at": now(), "turn": None, "due_at": None, "lease": ""})
    row.update_from_dict(fields)
    await row.save()
    await arrivals.end(row.id)
    was_not_run = state == "cancelled" and row.running_at is None
    if row.price and (was_not_run or row.code in _PLATFORMS_FAULT):
        note = f"model for {row.challenge}: {row.code or state}"
        await accounts.post(
            row.account_id, row.price, reason="evaluation_refund", reference=row.id, note=note
        )
