"""One call for all who ask the same at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCalls(Generic[K, V]):
    """Runs ``call`` once for a key, however many wait for it; cancels it when the last of them has gone."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[V]] = {}
        self._waiting: dict[K, int] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._tasks

    async def run(self, key: K, call: Callable[[], Awaitable[V]]) -> V:
        """Return the result of the call for ``key``, started by ``call`` if there is none; raises as that."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.ensure_future(call())
            self._waiting[key] = 0
            task.add_done_callback(lambda done: self._forget(key, done))
        self._waiting[key] += 1
        try:
            return await asyncio.shield(task)
        finally:
            if self._tasks.get(key) is task:
                self._waiting[key] -= 1
                if not self._waiting[key]:
                    self._forget(key, task)
                    task.cancel()

    async def close(self) -> None:
        """Cancel all calls."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: K, task: asyncio.Task[V]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key], self._waiting[key]
        # Asking for the error marks it as seen, also where every caller has gone.
        if task.done() and not task.cancelled():
            task.exception()
