"""Leases: which process works on which requests. A killed process loses its own after a while."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import timedelta
from enum import Enum
from typing import Final

from tortoise.expressions import Q
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium.database import transactional
from collidium.simulations.models import SimulationRequest
from collidium.simulations.states import Step

#: Nothing is ever due later, and nobody ever holds a lease for longer: what seems to be was written before
#: the clock was set back.
HORIZON: Final = timedelta(hours=2)


class Lane(Enum):
    """Kinds of work that do not wait for each other."""

    #: Asking runners about jobs, hundreds in one call.
    POLL = Q(step=Step.FOLLOW, cancel_requested_at__isnull=True)
    #: Handing jobs over, and stopping them.
    HAND_OVER = Q(step=Step.SUBMIT) | Q(step=Step.FOLLOW, cancel_requested_at__isnull=False)
    #: Moving output: long, and heavy on disk and network.
    DELIVER = Q(step__in=[Step.COLLECT, Step.PUBLISH])


async def claim(lane: Lane, most: int, seconds: float) -> list[SimulationRequest]:
    """Take up to ``most`` requests that are due, oldest first, for that many seconds."""
    # SQLite locks everything for a transaction, so look first whether there is anything.
    if not await _due(lane).exists():
        return []
    return await _claim(lane, most, seconds)


@transactional
async def _claim(lane: Lane, most: int, seconds: float) -> list[SimulationRequest]:
    rows = await _due(lane).select_for_update(skip_locked=True).order_by("due_at").limit(most)
    lease, until = uuid.uuid4().hex, now() + timedelta(seconds=seconds)
    await SimulationRequest.filter(id__in=[row.id for row in rows]).update(lease=lease, leased_until=until)
    for row in rows:
        row.lease, row.leased_until = lease, until
    return rows


async def renew(leases: Iterable[str], seconds: float) -> None:
    """Keep what is still held for that many seconds from now."""
    until = now() + timedelta(seconds=seconds)
    await SimulationRequest.filter(lease__in=list(leases)).update(leased_until=until)


async def give_back(leases: Iterable[str]) -> None:
    """Leave what is still held to others at once."""
    await SimulationRequest.filter(lease__in=list(leases)).update(lease="", leased_until=None)


def _due(lane: Lane) -> QuerySet[SimulationRequest]:
    moment = now()
    due = Q(due_at__lte=moment) | Q(due_at__gt=moment + HORIZON)
    free = Q(leased_until__isnull=True) | Q(leased_until__lte=moment) | Q(leased_until__gt=moment + HORIZON)
    return SimulationRequest.filter(lane.value, due, free)
