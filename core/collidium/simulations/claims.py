"""The leases of requests, and what their holders read."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tortoise.timezone import now

from collidium.database.leases import Leases
from collidium.simulations.models import CANCELLABLE, TERMINAL, SimulationRequest, State

LEASES: Final = Leases(SimulationRequest, "leased_until")


def outcome_of_failure(row: SimulationRequest) -> State:
    """Return the state in which a request ends that cannot continue: cancelled if it was being cancelled."""
    cancelling = row.cancel_requested_at is not None and row.step in CANCELLABLE
    return State.CANCELLED if cancelling else State.FAILED


async def has_ended(row: SimulationRequest) -> bool:
    """Whether a request has ended since it was read."""
    return (await SimulationRequest.get(id=row.id)).state in TERMINAL


async def is_anothers(row: SimulationRequest, handle: str) -> bool:
    """Whether the job with that handle belongs to another request."""
    return await SimulationRequest.filter(runner=row.runner, handle=handle).exclude(id=row.id).exists()


def past(deadline: datetime | None) -> bool:
    """Whether a deadline has passed."""
    return deadline is not None and deadline <= now()
