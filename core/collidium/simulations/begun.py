"""Jobs that began to run, those of many requests in one transaction: batch systems start hundreds at once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium.database import transactional
from collidium.runtime.failpoints import reached
from collidium.simulations.models import HistoryLine, SimulationRequest
from collidium.simulations.states import State

if TYPE_CHECKING:
    from collidium.settings import Settings

logger = logging.getLogger(__name__)


@transactional
async def begun(lease: str, request_ids: Sequence[str], again: timedelta, settings: Settings) -> None:
    """These run now: look again after that time, or at once at those that were cancelled meanwhile.

    What is not held under the lease any more, or does not wait, is left as it is.
    """
    held = SimulationRequest.filter(lease=lease, request_id__in=request_ids, state=State.QUEUED)
    rows = await held.select_for_update().only("id", "request_id", "cancel_requested_at")
    moment = now()
    for row in rows:
        logger.info("request %s: %s", row.request_id, State.RUNNING)
    await HistoryLine.bulk_create(
        [HistoryLine(request_id=row.id, at=moment, state=State.RUNNING) for row in rows], batch_size=500
    )
    deadline = moment + timedelta(seconds=settings.running_deadline_seconds)
    going_on = [row.id for row in rows if row.cancel_requested_at is None]
    cancelled = [row.id for row in rows if row.cancel_requested_at is not None]
    for ids, due in (
        (going_on, {"due_at": moment + again, "deadline_at": deadline}),
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
    reached("follow.before_commit")
