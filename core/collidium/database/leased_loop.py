"""A loop over work in the database that any number of processes may run, each on what it has leased."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from collidium.database.errors import is_away
from collidium.runtime.waiting import Backoff, Waiter, WakeSignal

Work = TypeVar("Work")

logger = logging.getLogger(__name__)

#: How soon to look again when the database was away.
RECOVERY: Final = Backoff(first=timedelta(seconds=0.5), longest=timedelta(seconds=10))


class LeasedLoop(ABC, Generic[Work]):
    """Leases what is due and works on each in a task of its own; a killed process leaves it to others.

    Parameters
    ----------
    name
        For the log.
    signal
        Notified when there may be something to do.
    idle_seconds
        Time between two looks into the database without a notification.
    """

    def __init__(self, name: str, signal: WakeSignal, idle_seconds: float) -> None:
        self._name = name
        self._signal = signal
        self._idle_seconds = idle_seconds
        self._waiter = Waiter()
        self._under_way: dict[asyncio.Task[None], Work] = {}

    @abstractmethod
    async def take(self) -> bool:
        """Lease what is due, as far as there is room, and begin it; whether there may be more."""

    @asynccontextmanager
    async def running(self, seconds: float = 0) -> AsyncIterator[None]:
        """Run in the background while the context lasts, and ``stop`` at its end."""
        task = asyncio.create_task(self.run(), name=self._name)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.stop(seconds)

    async def run(self) -> None:
        """Work on what is due, for ever."""
        failures = 0
        with self._signal.waiter() as self._waiter:
            while True:
                try:
                    if await self.take():
                        self._waiter.wake()
                    failures, pause = 0, self._idle_seconds
                except Exception as error:
                    # Whatever it is, the loop must go on.
                    failures += 1
                    pause = RECOVERY.pause(failures).total_seconds()
                    logger.warning(
                        *("%s: cannot see what is due: %s; again in %.0f s", self._name, error, pause),
                        exc_info=not is_away(error),
                    )
                await self._waiter.wait(pause)

    def begin(self, job: Coroutine[Any, Any, None], work: Work) -> None:
        """Do ``job`` in the background; there is room for more when it has ended."""
        task = asyncio.create_task(job)
        self._under_way[task] = work
        task.add_done_callback(self._end)

    async def stop(self, seconds: float = 0) -> None:
        """Wait so long for what is under way, and then leave it to others."""
        if self._under_way:
            _, late = await asyncio.wait(list(self._under_way), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self._waiter.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            # The database is away, for example: when the lease is over the work is taken again.
            logger.error("%s: what became of it cannot be written down", self._name, exc_info=error)


async def renewing(
    work: Coroutine[Any, Any, None], renew: Callable[[], Awaitable[None]], seconds: float
) -> None:
    """Await work, and call ``renew`` every so many seconds; an error of ``renew`` cancels the work."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=seconds))[0]:
            await renew()
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
