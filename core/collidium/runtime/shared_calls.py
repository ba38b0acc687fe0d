"""One call for all who ask the same at once, its results kept; and records watched by many until they end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, MutableMapping
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar

from cachetools import TTLCache

from collidium.errors import TooManyRequests

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Seconds between two looks at what is watched, and for how long others that watch it share one. A look at a
#: request lets the follower poll its job, and a later one finds what is new: within two seconds
#: (``2 * (LOOK_SECONDS + SHARED_SECONDS) + follower.IDLE_SECONDS``, and what the calls take). Evaluations
#: write their progress each second.
LOOK_SECONDS: Final = 0.5
SHARED_SECONDS: Final = 0.2
#: Streams of one account that a process serves at once, and how long one lasts before its client calls again.
STREAMS: Final = 8
STREAM_SECONDS: Final = 300.0
#: Records whose last look is kept.
_KEPT: Final = 1000


class SharedCalls(Generic[K, V]):
    """Runs a call once for a key, however many wait for it; an error goes to all of them and is not kept.

    Parameters
    ----------
    kept
        Where results are kept, such as a ``cachetools.TTLCache``, whose bounds hold; default: nowhere.
    name
        Of the cache in metrics; default: it is not counted.
    finish
        Whether a call goes on when the last who waited for it has gone; default: it is cancelled.
    """

    def __init__(
        self, kept: MutableMapping[K, V] | None = None, *, name: str = "", finish: bool = False
    ) -> None:
        self._kept = kept
        self._finish = finish
        self._count = _counter(name) if name else None
        self._tasks: dict[K, asyncio.Task[V]] = {}
        self._waiting: dict[K, int] = {}

    def __contains__(self, key: K) -> bool:
        """Whether a result for ``key`` is kept, or its call under way."""
        return key in self._tasks or (self._kept is not None and key in self._kept)

    def __len__(self) -> int:
        """Calls under way."""
        return len(self._tasks)

    async def run(self, key: K, call: Callable[[], Awaitable[V]]) -> V:
        """Return what is kept for ``key``, or the result of its call, which ``call`` starts if need be."""
        if self._kept is not None:
            try:
                result = self._kept[key]
            except KeyError:
                pass
            else:
                if self._count:
                    self._count("hit")
                return result
        if self._count:
            self._count("miss")
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(self._result(key, call()))
            self._waiting[key] = 0
            task.add_done_callback(lambda done: self._forget(key, done))
        self._waiting[key] += 1
        try:
            return await asyncio.shield(task)
        finally:
            if self._tasks.get(key) is task:
                self._waiting[key] -= 1
                if not self._waiting[key] and not self._finish:
                    self._forget(key, task)
                    task.cancel()

    async def close(self) -> None:
        """Cancel all calls."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _result(self, key: K, called: Awaitable[V]) -> V:
        result = await called
        if self._kept is not None:
            with suppress(ValueError):  # larger than all that may be kept
                self._kept[key] = result
        return result

    def _forget(self, key: K, task: asyncio.Task[V]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key], self._waiting[key]
        # Asking for the error marks it as seen, also where every caller has gone.
        if task.done() and not task.cancelled():
            task.exception()


def _counter(name: str) -> Callable[[str], None]:
    from collidium.runtime.metrics import CACHE  # servers alone count

    counters = {result: CACHE.labels(name, result) for result in ("hit", "miss")}
    return lambda result: counters[result].inc()


class Watched(Protocol):
    """A record of something that ends."""

    @property
    def has_ended(self) -> bool: ...


class Watching:
    """The streams of one process. No stream holds a connection of the database between two looks."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self._looks: SharedCalls[str, Watched] = SharedCalls(TTLCache(_KEPT, SHARED_SECONDS))
        self._streams: Counter[int] = Counter()
        #: Set when the server stops: streams end.
        self.stopping = asyncio.Event()

    def stream(
        self, key: str, account_id: int, look: Callable[[], Awaitable[Watched]]
    ) -> AsyncIterator[bytes]:
        """Server-sent events: what ``look`` returns as JSON whenever it has changed, until it has ended.

        Looks of one ``key`` are shared. Raises TooManyRequests beyond STREAMS of an account.
        """
        if self._streams[account_id] >= STREAMS:
            raise TooManyRequests(f"at most {STREAMS} streams at once; close one of them", retry_after=5)
        return self._events(key, account_id, look)

    async def _events(
        self, key: str, account_id: int, look: Callable[[], Awaitable[Watched]]
    ) -> AsyncIterator[bytes]:
        self._streams[account_id] += 1
        try:
            last, until = b"", monotonic() + STREAM_SECONDS
            # Many may have been let in at once, before any of them began.
            while self._streams[account_id] <= STREAMS and monotonic() < until:
                found = await self._looks.run(key, look)
                now = self._encode(found)
                # A comment shows a client that has gone.
                yield b":\n\n" if now == last else b"data: " + now + b"\n\n"
                last = now
                if found.has_ended or self.stopping.is_set():
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self.stopping.wait()
        except Exception as error:
            # Most likely the database is away; the client calls again.
            logger.warning("a stream of %s ended: %s", key, error)
        finally:
            self._streams[account_id] -= 1
            if not self._streams[account_id]:
                del self._streams[account_id]
