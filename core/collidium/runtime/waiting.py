"""Wake signals, pauses before retries, and blocking work in threads."""

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
    """Wakes waiters of this process when there may be something to do."""

    def __init__(self) -> None:
        self._waiters: set[Waiter] = set()

    def notify(self) -> None:
        """Wake every waiter; the next wait of a busy one returns at once."""
        for waiter in self._waiters:
            waiter.wake()

    @contextmanager
    def waiter(self) -> Iterator[Waiter]:
        """Return a waiter that is woken while the context lasts."""
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
        """Let the current or the next wait return at once."""
        self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Return when woken since the last wait, or after ``seconds``."""
        # Not wait_for: in Python 3.11 it swallows a cancellation that comes together with the signal.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with jitter: spans double up to ``longest``; a pause is a half to a whole span."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)

    def pause(self, attempts: int) -> timedelta:
        """Return the pause after ``attempts`` consecutive failures, at least 1."""
        # The exponent is bounded to avoid overflow.
        span = min(self.first * 2.0 ** min(attempts - 1, 40), self.longest)
        return span * random.uniform(0.5, 1)  # noqa: S311 -- nothing to guess


async def in_thread(work: Callable[[], Result], name: str) -> Result:
    """Return the result of ``work()``, run in a daemon thread of its own called ``collidium-`` and ``name``.

    Unlike with asyncio.to_thread, neither a cancelled caller nor the end of the event loop waits for the
    thread: a look-up may wait a long time for an unresponsive name server. Raises Unavailable if the system
    has no more threads.
    """
    future: Future[Result] = Future()
    # A running future accepts a result also after its caller was cancelled.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # raised by the waiting caller
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
    """Enter and leave a blocking context, such as one that writes files, in threads."""
    value = await asyncio.to_thread(context.__enter__)
    try:
        yield value
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)
