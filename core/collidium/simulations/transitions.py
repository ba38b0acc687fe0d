"""Every change of a request's state or step, each in one transaction; and the records of requests.

The loop applies the outcome of a step by :func:`apply` or :func:`finish`. Steps change nothing themselves.

::

    queued ──► running ──► completed          submit ─► follow ─► collect ─► publish ─► (ended)
       │          ├──────► failed               └──────────┴── cancel ──────────────► (ended)
       └──────────┴──────► cancelled

A process that works on a request holds its lease. A change under a lease that another process has taken over
raises :class:`LeaseLost`, so that two processes cannot both change a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import accounts, outbox, records
from collidium.database import on_commit, transactional
from collidium.database.statements import RowByKey
from collidium.errors import Conflict
from collidium.runtime import metrics
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import Backoff, WakeSignal
from collidium.simulations import totals
from collidium.simulations.claims import LEASES
from collidium.simulations.models import (
    CANCELLABLE,
    TERMINAL,
    HistoryLine,
    SimulationRequest,
    State,
    Step,
    StoredPart,
)
from collidium.simulations.orders import believable, credits_kept, node_hours_used
from collidium.simulations.outcomes import Ended, HandedOver, Postponed, Progressed

if TYPE_CHECKING:
    from collidium.datasets.output import PartFiles
    from collidium.settings import Settings

logger = logging.getLogger(__name__)

BACKOFF: Final = Backoff()
_lines: Final = RowByKey(HistoryLine, "request_id", order="id")
#: Notified when a request becomes due, for the follower of this process.
CHANGED: Final = WakeSignal()
#: Seconds by which the event loop's clock may be ahead of the wall clock.
_CLOCKS_DIFFER: Final = 0.01
#: Maximum number of reasons in a timeline, as some runners never stop reporting new ones. Changes of state
#: are always added.
LINES: Final = 199
#: Maximum length of a stored reason.
REASON: Final = 500


# -- outcomes of steps ---------------------------------------------------------------------------------


@transactional
async def apply(
    claimed: SimulationRequest, outcome: HandedOver | Progressed | Postponed, settings: Settings
) -> None:
    """Apply the outcome of a step to its request, which goes on.

    Raises LeaseLost, and IntegrityError for a handle that another request has.
    """
    row = await LEASES.held(claimed)
    match outcome:
        case HandedOver(handle):
            row.handle = handle
            reached("submit.before_commit")
            await _advance(row, Step.FOLLOW, settings.queued_deadline_seconds)
        case Progressed():
            await _progress(row, outcome, settings)
        case Postponed():
            await _postpone(row, outcome, cancelled=_cancelled_since(claimed, row))


async def _progress(row: SimulationRequest, done: Progressed, settings: Settings) -> None:
    has_ended = done.step not in CANCELLABLE
    if has_ended and row.step in CANCELLABLE and row.cancel_requested_at is not None:
        # It was cancelled while the job was polled; the cancellation handles the completed job.
        await _release(row, timedelta(0))
        return
    if done.running and row.state == State.QUEUED:
        await _set_state(row, State.RUNNING, done.reason)
        row.started_at = now()
        if row.cancel_requested_at is None:
            row.deadline_at = now() + timedelta(seconds=settings.running_deadline_seconds)
    elif done.reason and not done.running:
        await _set_reason(row, done.reason)
    if done.parts_stored is not None:
        row.parts_stored = done.parts_stored
    if done.used is not None:
        row.node_hours_used = believable(done.used)
    if row.step == done.step == Step.FOLLOW:
        reached("follow.before_commit")
    elif done.step == Step.COLLECT:
        reached("follow.completed")
    elif done.step == Step.PUBLISH:
        row.output = [asdict(file) for file in done.files]
        row.lost_collections = 0
        await StoredPart.filter(request_id=row.id).delete()
        reached("collect.before_commit")
    if has_ended:
        await _advance(row, done.step, settings.publish_deadline_seconds)
    else:
        row.step = done.step
        row.attempts = row.denials = 0
        await _release(row, done.pause if row.cancel_requested_at is None else timedelta(0))


async def _postpone(row: SimulationRequest, failure: Postponed, *, cancelled: bool) -> None:
    row.attempts += 1
    row.denials = row.denials + 1 if failure.denied else 0
    row.lost_collections += failure.worker_lost
    await _set_reason(row, failure.trouble)
    reached("postpone.before_commit")
    # A cancellation in the meantime does not wait.
    await _release(row, timedelta(0) if cancelled else BACKOFF.pause(row.attempts))


@transactional
async def finish(claimed: SimulationRequest, ending: Ended) -> records.SimulationRequest:
    """End a request: write state, refund, totals, history and webhook together. Raises LeaseLost."""
    row = await LEASES.held(claimed)
    if ending.state == State.COMPLETED and row.state == State.QUEUED:
        await _set_state(row, State.RUNNING)
        row.started_at = now()
    row.finished_at = now()
    row.finished_month = totals.month_of(row.finished_at)
    await _set_state(row, ending.state, ending.reason)
    row.output_hub_repo = ending.output_hub_repo
    reached("finish.before_refund")
    row.credits_refunded = row.credits_charged - credits_kept(row, ending)
    if row.credits_refunded:
        await accounts.post(
            row.account_id, row.credits_refunded, reason="simulation_refund", reference=row.request_id
        )
    reached("finish.before_totals")
    used = node_hours_used(row, ending)
    await totals.end_request(row, used, failed=ending.state == State.FAILED)
    row.node_hours = used
    row.step, row.due_at, row.deadline_at, row.encrypted_token = Step.NONE, None, None, None
    row.lease, row.leased_until = "", None
    await row.save()
    ended = view(row, await history_of(row))
    reached("finish.before_outbox")
    await outbox.announce(
        "job", [row.account_id], row.request_id, records.as_json(ended), url=row.webhook_url
    )
    on_commit(metrics.SIMULATIONS_ENDED.labels(row.runner, row.state).inc)
    reached("finish.before_commit")
    return ended


@transactional
async def unchanged(lease: str, request_ids: Sequence[str], again: timedelta) -> None:
    """The jobs were polled and have not changed: release their requests.

    They are due ``again`` after that time, or earlier if :func:`poll_soon` was called in the meantime, and
    at once if they were cancelled in the meantime.
    """
    rows = SimulationRequest.filter(lease=lease, request_id__in=request_ids)
    waiting = rows.filter(cancel_requested_at__isnull=True)
    released: dict[str, Any] = {"attempts": 0, "denials": 0, "lease": "", "leased_until": None}
    later = now() + again
    await waiting.filter(due_at__gt=now(), due_at__lt=later).update(**released)
    await waiting.update(due_at=later, **released)
    cancelled = rows.filter(cancel_requested_at__isnull=False)
    if await cancelled.update(due_at=now(), lease="", leased_until=None):
        on_commit(CHANGED.notify)


@transactional
async def mark_running(lease: str, request_ids: Sequence[str], again: timedelta, settings: Settings) -> None:
    """The jobs run now. They are due ``again`` after that time, at once if cancelled in the meantime.

    Requests whose lease was lost, or that are no longer queued, stay as they are.
    """
    queued = SimulationRequest.filter(lease=lease, request_id__in=request_ids, state=State.QUEUED)
    rows = await queued.select_for_update().only("id", "request_id", "cancel_requested_at")
    moment = now()
    for row in rows:
        logger.info("request %s: %s", row.request_id, State.RUNNING)
    await HistoryLine.bulk_create(
        [HistoryLine(request_id=row.id, at=moment, state=State.RUNNING) for row in rows], batch_size=500
    )
    deadline = moment + timedelta(seconds=settings.running_deadline_seconds)
    running = [row.id for row in rows if row.cancel_requested_at is None]
    cancelled = [row.id for row in rows if row.cancel_requested_at is not None]
    for ids, due in (
        (running, {"due_at": moment + again, "deadline_at": deadline}),
        (cancelled, {"due_at": moment}),
    ):
        if ids:
            await SimulationRequest.filter(id__in=ids).update(
                state=State.RUNNING,
                reason=None,
                started_at=moment,
                attempts=0,
                denials=0,
                lease="",
                leased_until=None,
                **due,
            )
    if cancelled:
        on_commit(CHANGED.notify)
    reached("follow.before_commit")


@transactional
async def note_part(claimed: SimulationRequest, part: int, files: PartFiles, *, stored: bool) -> None:
    """Record the files of a part, before or after they are stored. Raises LeaseLost."""
    await LEASES.held(claimed)
    here = StoredPart.filter(request_id=claimed.id, part=part)
    if stored:
        await here.update(stored=True)
    elif not await here.update(files=asdict(files)):
        await StoredPart.create(request_id=claimed.id, part=part, files=asdict(files))


# -- between steps --------------------------------------------------------------------------------------


async def poll_soon(row: SimulationRequest, seconds: float) -> None:
    """Make the next poll of the job due, unless it is being polled or the last poll failed.

    It is due at once, or with ``seconds`` at the next multiple of that time, so that the jobs for which any
    process calls this are polled in one call; then also a job that is being polled now is due again.
    """
    moment = now()
    wait = seconds and seconds - moment.timestamp() % seconds
    due = moment + timedelta(seconds=wait)
    if row.step != Step.FOLLOW or row.due_at is None or (row.due_at <= due and not row.lease):
        return
    rows = SimulationRequest.filter(id=row.id, step=Step.FOLLOW, cancel_requested_at__isnull=True, attempts=0)
    later = Q(due_at__gt=due, lease="")
    if await rows.filter(later | ~Q(lease="") if seconds else later).update(due_at=due) and seconds:
        asyncio.get_running_loop().call_later(wait + _CLOCKS_DIFFER, CHANGED.notify)


@transactional
async def ask_to_cancel(request_id: str, by: str, settings: Settings) -> records.SimulationRequest:
    """Ask the follower to cancel a request; repeating this changes nothing.

    Raises Conflict if the request has ended other than by cancellation, or if its job has ended.
    """
    row = await SimulationRequest.select_for_update().get(request_id=request_id)
    if row.state in TERMINAL and row.state != State.CANCELLED:
        raise Conflict(f"the request has {row.state} already")
    if row.step and row.step not in CANCELLABLE:
        raise Conflict("the job has ended and its output is being published: there is nothing to cancel")
    if row.state not in TERMINAL and row.cancel_requested_at is None:
        row.cancel_requested_at = row.due_at = now()
        row.deadline_at = now() + timedelta(seconds=settings.cancel_deadline_seconds)
        row.attempts = 0
        await _set_reason(row, f"cancel requested by {by}")
        await row.save()
        reached("cancel.before_commit")
        on_commit(CHANGED.notify)
    return view(row, await history_of(row))


# -- rows ----------------------------------------------------------------------------------------------


async def history_of(row: SimulationRequest) -> list[HistoryLine]:
    """Return the history of a request, oldest first."""
    return await _lines.all(row.id)


async def _set_state(row: SimulationRequest, state: State, reason: str | None = None) -> None:
    row.state = state
    row.reason = _single_line(reason)
    logger.info("request %s: %s%s", row.request_id, state, f": {row.reason}" if row.reason else "")
    await HistoryLine.create(request_id=row.id, at=now(), state=state, reason=row.reason)


async def _set_reason(row: SimulationRequest, reason: str) -> None:
    """Add a reason to the timeline, unless it repeats the last one or the timeline is full."""
    text = _single_line(reason)
    if text == row.reason:
        return
    row.reason = text
    logger.info("request %s (%s): %s", row.request_id, row.state, text)
    if await HistoryLine.filter(request_id=row.id).count() < LINES:
        await HistoryLine.create(request_id=row.id, at=now(), state=row.state, reason=text)


async def _advance(row: SimulationRequest, step: Step, deadline_seconds: float) -> None:
    row.step = step
    row.attempts = row.denials = 0
    row.reason = None
    if row.cancel_requested_at is None:
        row.deadline_at = now() + timedelta(seconds=deadline_seconds)
    await _release(row, timedelta(0))


async def _release(row: SimulationRequest, pause: timedelta) -> None:
    row.due_at = now() + pause
    row.lease, row.leased_until = "", None
    await row.save()
    if not pause:
        on_commit(CHANGED.notify)


def _cancelled_since(claimed: SimulationRequest, row: SimulationRequest) -> bool:
    return row.cancel_requested_at is not None and claimed.cancel_requested_at is None


def _single_line(reason: str | None) -> str | None:
    return None if reason is None else " ".join(reason.replace("\0", " ").split())[:REASON]


# -- records -------------------------------------------------------------------------------------------


def view(row: SimulationRequest, history: Sequence[HistoryLine] | None = None) -> records.SimulationRequest:
    """Return the record of a request for its owner and readers, without a timeline in lists."""
    return records.SimulationRequest.of(row, **_derived(row, history))


def operator_view(row: SimulationRequest, history: Sequence[HistoryLine]) -> records.OperatedRequest:
    """Return the record of a request for operators."""
    return records.OperatedRequest.of(row, runner_handle=row.handle, **_derived(row, history))


def _derived(row: SimulationRequest, history: Sequence[HistoryLine] | None) -> dict[str, Any]:
    first = records.Moment(at=row.created_at, state=State.QUEUED, reason=None)
    return {
        **row.order.parameters,
        "estimated_completion_seconds": max(1, round(row.node_seconds)),
        "cancel_requested": row.cancel_requested_at is not None,
        "runner_is_mock": row.is_mock,
        "output_is_mock": row.is_mock and row.output_hub_repo is not None,
        "timeline": () if history is None else (first, *map(records.Moment.of, history)),
    }
