"""Shared calls: concurrent callers with the same key share one call, and its result may be cached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from contextlib import suppress
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCalls(Generic[K, V]):
    """Runs one call for all concurrent callers with the same key. All get its error, which is not cached.

    Parameters
    ----------
    kept
        The cache of results, such as a ``cachetools.TTLCache``; default: none.
    name
        The name of the cache in metrics; default: it is not counted.
    finish
        Whether a call continues when all of its callers were cancelled; default: it is cancelled, too.
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
        """Whether the result for ``key`` is cached, or its call is running."""
        return key in self._tasks or (self._kept is not None and key in self._kept)

    def __len__(self) -> int:
        """Number of running calls."""
        return len(self._tasks)

    async def run(self, key: K, call: Callable[[], Awaitable[V]]) -> V:
        """Return the cached result for ``key``, or that of the running call, or else that of ``call``."""
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
            with suppress(ValueError):  # larger than the cache
                self._kept[key] = result
        return result

    def _forget(self, key: K, task: asyncio.Task[V]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key], self._waiting[key]
        if task.done() and not task.cancelled():
            task.exception()  # retrieved, as all callers may have been cancelled


def _counter(name: str) -> Callable[[str], None]:
    from collidium.runtime.metrics import CACHE  # not imported by clients

    counters = {result: CACHE.labels(name, result) for result in ("hit", "miss")}
    return lambda result: counters[result].inc()
