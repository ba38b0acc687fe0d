"""Keeps calls within what the API allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class Pace:
    """Turns, so many per second and evenly apart; those who wait get theirs in order."""

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._apart = 1 / per_second
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0

    async def turn(self) -> None:
        """Return when the caller may call."""
        now = self._clock()
        mine = max(self._next, now)
        self._next = mine + self._apart
        if mine > now:
            await self._sleep(mine - now)
