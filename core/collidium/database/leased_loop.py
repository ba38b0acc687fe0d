"""A loop that leases due work in the database. Any number of processes may run it at once."""

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

#: The pauses while the database is unavailable.
RECOVERY: Final = Backoff(first=timedelta(seconds=0.5), longest=timedelta(seconds=10))


class LeasedLoop(ABC, Generic[Work]):
    """Leases due work and does it in tasks; other processes take over the work of a killed one.

    Parameters
    ----------
    name
        For the log.
    signal
        Notified when work may be due.
    idle_seconds
        Time between two queries when there is no notification.
    """

    def __init__(self, name: str, signal: WakeSignal, idle_seconds: float) -> None:
        self._name = name
        self._signal = signal
        self._idle_seconds = idle_seconds
        self._waiter = Waiter()
        self._under_way: dict[asyncio.Task[None], Work] = {}

    @abstractmethod
    async def take(self) -> bool:
        """Lease as much due work as there is room for, begin it, and return whether there may be more."""

    @asynccontextmanager
    async def running(self, seconds: float = 0) -> AsyncIterator[None]:
        """Run in the background while the context lasts, then :meth:`stop`."""
        task = asyncio.create_task(self.run(), name=self._name)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.stop(seconds)

    async def run(self) -> None:
        """Take due work until cancelled."""
        failures = 0
        with self._signal.waiter() as self._waiter:
            while True:
                try:
                    if await self.take():
                        self._waiter.wake()
                    failures, pause = 0, self._idle_seconds
                except Exception as error:  # the loop must go on
                    failures += 1
                    pause = RECOVERY.pause(failures).total_seconds()
                    logger.warning(
                        "%s: due work cannot be read: %s; again in %.0f s",
                        self._name,
                        error,
                        pause,
                        exc_info=not is_away(error),
                    )
                await self._waiter.wait(pause)

    def begin(self, job: Coroutine[Any, Any, None], work: Work) -> None:
        """Run ``job`` in the background, and :meth:`take` again when it has ended."""
        task = asyncio.create_task(job)
        self._under_way[task] = work
        task.add_done_callback(self._end)

    async def stop(self, seconds: float = 0) -> None:
        """Wait up to ``seconds`` for running jobs, then cancel them."""
        if self._under_way:
            _, late = await asyncio.wait(list(self._under_way), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self._waiter.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            # Most likely the database is unavailable: the work is taken again when its lease expires.
            logger.error("%s: the outcome of a job cannot be recorded", self._name, exc_info=error)


async def renewing(
    work: Coroutine[Any, Any, None], renew: Callable[[], Awaitable[None]], seconds: float
) -> None:
    """Await ``work``, and call ``renew`` every ``seconds``; an error of ``renew`` cancels the work."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=seconds))[0]:
            await renew()
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
