"""The queue: requests that have not ended, counted by their index."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tortoise.functions import Count

from collidium.simulations.models import SimulationRequest
from collidium.simulations.states import State


@dataclass(frozen=True, slots=True)
class Queue:
    """How many requests have not ended."""

    queued: int
    running: int
    #: When the one was ordered that has been queued longest.
    oldest_queued_at: datetime | None


async def queue() -> Queue:
    """The queue as it is now."""
    unfinished = SimulationRequest.filter(state__in=[State.QUEUED, State.RUNNING])
    counted = await unfinished.annotate(number=Count("id")).group_by("state").values_list("state", "number")
    numbers = dict(counted)
    oldest = (
        await SimulationRequest.filter(state=State.QUEUED).order_by("id").only("id", "created_at").first()
    )
    return Queue(
        queued=numbers.get(State.QUEUED, 0),
        running=numbers.get(State.RUNNING, 0),
        oldest_queued_at=oldest.created_at if oldest else None,
    )
