"""Waiting: wake signals, pauses before retries, and blocking work in threads that no one has to wait for."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from collidium.errors import Unavailable

Result = TypeVar("Result")


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
    """Waits that double up to ``longest``, each drawn from the upper half of its span."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)

    def pause(self, attempts: int) -> timedelta:
        """The wait after so many failures in a row, at least one; with jitter, so that none march in step."""
        # The exponent is bounded before it is used: attempts may go on for days.
        span = min(self.first * 2.0 ** min(attempts - 1, 40), self.longest)
        return span * random.uniform(0.5, 1)  # noqa: S311 -- nothing to guess


async def in_thread(work: Callable[[], Result], name: str) -> Result:
    """``work()`` in a daemon thread of its own, called ``collidium-`` and ``name``.

    Unlike with asyncio.to_thread, a cancelled caller leaves at once and the loop's end does not wait for the
    work: an upload may be waiting an hour for its score, a look-up for a name server that is away. Raises
    Unavailable where the system has no more threads.
    """
    future: Future[Result] = Future()
    # From here on it takes a result even when no caller waits any more.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # whatever it is, it belongs to who waits
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        threading.Thread(target=run, name=f"collidium-{name}", daemon=True).start()
    except RuntimeError as error:
        raise Unavailable(f"the system has no more threads for this ({name}); try again later") from error
    return await asyncio.wrap_future(future)


@asynccontextmanager
async def entered_in_thread(context: AbstractContextManager[Result]) -> AsyncIterator[Result]:
    """A context whose beginning and end block, such as one that writes files: threads enter and leave it."""
    value = await asyncio.to_thread(context.__enter__)
    try:
        yield value
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)
