"""Waiting: wake signals for the loops of this process, and the pause before something failed is retried."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta


class WakeSignal:
    """Notified when there may be something to do."""

    def __init__(self) -> None:
        self._waiters: set[Waiter] = set()

    def notify(self) -> None:
        """Wake every waiter, also one that is busy now."""
        for waiter in self._waiters:
            waiter.wake()

    @contextmanager
    def waiter(self) -> Iterator[Waiter]:
        """Give a waiter that is woken while the context lasts."""
        waiter = Waiter()
        self._waiters.add(waiter)
        try:
            yield waiter
        finally:
            self._waiters.remove(waiter)


class Waiter:
    """Waits to be woken."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Let the wait under way, or the next one, end at once."""
        self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Return when woken since the last wait, or after that many seconds."""
        # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the signal.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow by ``factor`` up to ``longest``, each drawn from the upper half of its span."""

    first: timedelta = timedelta(seconds=1)
    factor: float = 2
    longest: timedelta = timedelta(minutes=5)

    def pause(self, attempts: int) -> timedelta:
        """The wait after so many failures in a row, at least one; with jitter, so that none march in step."""
        # The exponent is bounded before it is used: attempts may go on for days.
        span = min(self.first * self.factor ** min(attempts - 1, 40), self.longest)
        return span * random.uniform(0.5, 1)  # noqa: S311 -- nothing to guess
