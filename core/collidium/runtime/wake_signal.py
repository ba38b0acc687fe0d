"""Wakes the loops of this process that look after the database, so that nothing waits for their next look."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Bell:
    """Rung when there may be something to do."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    def ring(self) -> None:
        """Wake every listener, also one that is busy now."""
        for listener in self._listeners:
            listener.wake()

    @contextmanager
    def listener(self) -> Iterator[Listener]:
        """Somebody who hears the bell while the context lasts."""
        listener = Listener()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)


class Listener:
    """Waits for the bell."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Let the wait under way, or the next one, end at once."""
        self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Return when woken since the last wait, or after that many seconds."""
        # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the bell.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
