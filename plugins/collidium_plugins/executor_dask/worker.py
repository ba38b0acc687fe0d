"""The part of the executor ``dask`` that runs inside Dask's workers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from distributed import Worker, WorkerPlugin, get_worker

from collidium.contracts.executor import Limits
from collidium_plugins.executor_processes import Answer, Processes

_NAME = "collidium"


class Calls(WorkerPlugin):
    """Runs a worker's calls in processes of its machine, and ends those that are cancelled: Dask does not."""

    name = _NAME

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._running: dict[str, asyncio.Task[Answer]] = {}

    async def run(self, key: str, call: bytes, limits: Limits, fresh: bool) -> Answer:
        """Run a call, as :meth:`Processes.run`."""
        self._running[key] = asyncio.create_task(self._processes.run(call, limits, fresh=fresh, local=True))
        try:
            return await self._running[key]
        finally:
            del self._running[key]

    def transition(self, key: Any, start: Any, finish: Any, **_: Any) -> None:
        """Called by Dask when a task changes its state, which is ``executing`` until the call has ended."""
        if finish != "executing" and (call := self._running.get(key)):
            call.cancel()

    async def teardown(self, worker: Worker) -> None:
        """Called by Dask when the worker ends."""
        await self._processes.close()


async def run(key: str, call: bytes, limits: Limits, fresh: bool) -> Answer:
    """Run a call on the worker that this is called in."""
    calls = cast("Calls", get_worker().plugins[_NAME])
    return await calls.run(key, call, limits, fresh)
