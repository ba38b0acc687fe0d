"""Executor ``processes``: worker processes of this machine, each with its own pipe, memory and time limit.

A worker that hangs, runs out of memory or crashes takes nothing with it but its own call: every worker has
pipes of its own (a shared queue breaks when one of its readers is killed), and a new one takes its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import re
import struct
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collidium.contracts.executor import Executor, Item, Limits, OverLimit, Result, WorkerDied
from collidium.hookspecs import hookimpl

if TYPE_CHECKING:
    from collidium.settings import Settings

_SCRIPT: Final = Path(__file__).with_name("scoring_worker.py")
_LENGTH: Final = struct.Struct("<Q")
#: How long a worker may take to start, or to import what a call needs.
_START_SECONDS: Final = 120.0
#: Calls of one map that wait for a worker, for each worker there is: enough to keep all of them busy.
_AHEAD: Final = 2

_SECRET = re.compile(r"PLATFORM_|HF_|.*(TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY$)", re.IGNORECASE)


@hookimpl
def collidium_executors(settings: Settings) -> list[Executor]:
    return [Processes(settings.scoring_workers)]


class Processes(Executor):
    """Runs calls in worker processes: started when first needed, used again, shared in turn."""

    name = "processes"

    def __init__(self, workers: int = 0) -> None:
        """``workers`` processes at the most; 0 means one for each core."""
        self.workers = workers or os.cpu_count() or 1
        # First come, first served: callers that each keep a few calls waiting take turns.
        self._free = asyncio.Semaphore(self.workers)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False

    async def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], limits: Limits
    ) -> AsyncGenerator[Result, None]:
        calls: deque[asyncio.Task[Result]] = deque()
        try:
            for item in items:
                if len(calls) >= _AHEAD * self.workers:
                    yield await calls.popleft()
                calls.append(asyncio.create_task(self._run(function, item, limits)))
            while calls:
                yield await calls.popleft()
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def close(self) -> None:
        self._closed = True
        for worker in self._all:
            worker.kill()
        for worker in list(self._all):
            await self._bury(worker)

    async def _run(self, function: Callable[[Item], Result], item: Item, limits: Limits) -> Result:
        call = pickle.dumps((function, item, limits.memory_bytes), pickle.HIGHEST_PROTOCOL)
        async with self._free:
            worker = await self._begin(call)
            try:
                answer = await worker.finish(limits)
            except BaseException:
                # Over its limit, dead, or nobody waits for it any more: it cannot be used again.
                await self._end(worker)
                raise
            self._idle.append(worker)
        kind, value = answer
        if kind == "memory":
            raise OverLimit(f"used more than its {limits.memory_bytes} bytes of memory")
        if kind == "raised":
            raise value
        result: Result = pickle.loads(value)  # noqa: S301 -- from our own worker
        return result

    async def _begin(self, call: bytes) -> _Worker:
        """A worker that has taken the call; one that died while it was idle is replaced."""
        while True:
            if self._closed:
                raise RuntimeError("the executor is closed")
            reused = bool(self._idle)
            worker = self._idle.pop() if reused else await self._start()
            try:
                await worker.begin(call)
            except BaseException as error:
                await self._end(worker)
                if reused and isinstance(error, WorkerDied):
                    continue
                raise
            return worker

    async def _start(self) -> _Worker:
        worker = _Worker(
            await asyncio.create_subprocess_exec(
                # -P: the worker must not find the modules beside its script as top-level ones.
                *(sys.executable, "-P", str(_SCRIPT), str(os.getpid())),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=_environment(),
            )
        )
        self._all.add(worker)
        try:
            await worker.greet()
        except BaseException:
            await self._end(worker)
            raise
        return worker

    async def _end(self, worker: _Worker) -> None:
        worker.kill()
        await asyncio.shield(self._bury(worker))

    async def _bury(self, worker: _Worker) -> None:
        await worker.process.wait()
        self._all.discard(worker)


class _Worker:
    """One process and its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def greet(self) -> None:
        """Tell a new worker where modules are, and wait until it is ready."""
        await self._send(pickle.dumps(sys.path))
        await self._expect("ready")

    async def begin(self, call: bytes) -> None:
        """Hand over a call and wait until its code is imported. Raises WorkerDied."""
        await self._send(call)
        await self._expect("begun")

    async def finish(self, limits: Limits) -> tuple[str, Any]:
        """Wait for what becomes of the call. Raises OverLimit and WorkerDied."""
        try:
            async with asyncio.timeout(limits.seconds):
                answer: tuple[str, Any] = await self._receive()
        except TimeoutError:
            raise OverLimit(f"took longer than its {limits.seconds:g} seconds") from None
        return answer

    def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def _expect(self, word: str) -> None:
        try:
            async with asyncio.timeout(_START_SECONDS):
                answer = await self._receive()
        except TimeoutError:
            raise WorkerDied("a worker does not start") from None
        if answer != word:
            raise WorkerDied(f"a worker answered {answer!r} instead of {word!r}")

    async def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None  # noqa: S101 -- it was started with a pipe
        try:
            self.process.stdin.write(_LENGTH.pack(len(data)) + data)
            await self.process.stdin.drain()
        except OSError as error:
            raise WorkerDied("a worker ended before it took a call") from error

    async def _receive(self) -> Any:
        assert self.process.stdout is not None  # noqa: S101 -- it was started with a pipe
        try:
            size = _LENGTH.unpack(await self.process.stdout.readexactly(_LENGTH.size))[0]
            return pickle.loads(await self.process.stdout.readexactly(size))  # noqa: S301 -- our own worker
        except (asyncio.IncompleteReadError, OSError):
            code = await self.process.wait()
            raise WorkerDied(f"a worker ended without an answer (exit code {code})") from None


def _environment() -> dict[str, str]:
    """What a worker, which reads files of strangers, may know; one thread, as one core is its share."""
    known = {name: value for name, value in os.environ.items() if not _SECRET.match(name)}
    return known | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
