"""One call for all who ask the same at once, and a cache of its results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


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
