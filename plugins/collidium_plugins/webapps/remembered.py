"""An answer that is kept for some seconds, so that a public page asks no more often than that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Remembered(Generic[Answer]):
    """What ``ask`` told last; however many want it at once, it is asked once."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[Answer]],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._seconds = seconds
        self._clock = clock
        self._asking = asyncio.Lock()
        self._kept: tuple[float, Answer] | None = None

    async def get(self) -> Answer:
        """The answer, at most so many seconds old. Raises what ``ask`` raises, which is not kept."""
        async with self._asking:
            if self._kept is None or self._clock() - self._kept[0] >= self._seconds:
                self._kept = self._clock(), await self._ask()
            return self._kept[1]
