"""Limits on what one account may order, exact because they are looked at with its row locked."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium.errors import TooManyRequests
from collidium.simulations.models import SimulationRequest
from collidium.simulations.states import State

if TYPE_CHECKING:
    from collidium.settings import Settings


async def require_room(account_id: int, settings: Settings) -> None:
    """Raise TooManyRequests when the account has ordered too much of late, or has too much under way.

    Call it in the transaction that orders, with the account's row locked.
    """
    window = timedelta(seconds=settings.burst_seconds)
    # The oldest of as many as fit into the window: once it leaves the window there is room again.
    oldest = (
        await SimulationRequest.filter(account_id=account_id, created_at__gt=now() - window)
        .order_by("-created_at")
        .offset(settings.burst_requests - 1)
        .only("id", "created_at")
        .first()
    )
    if oldest is not None:
        wait = oldest.created_at + window - now()
        raise TooManyRequests(
            f"an account orders at most {settings.burst_requests} times in {settings.burst_seconds:g} s",
            retry_after=max(1, ceil(wait.total_seconds())),
        )
    unfinished = SimulationRequest.filter(account_id=account_id, state__in=[State.QUEUED, State.RUNNING])
    if await unfinished.count() >= settings.unfinished_requests:
        raise TooManyRequests(
            f"an account has at most {settings.unfinished_requests} unfinished requests; wait for one to end",
            retry_after=60,
        )
