"""Wakes the loops of this process that look after the database, so that nothing waits for their next look."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress


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
