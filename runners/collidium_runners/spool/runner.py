"""The runner; blocking calls run in threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from collidium.contracts.runner import Job, JobProgress, JobStatus, Runner, RunnerError, RunnerUnavailable
from collidium_runners.spool.jobs import Snapshot, SpooledJobs
from collidium_runners.spool.spool import SpooledJob

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class SpooledRunner(Runner):
    """Runs jobs on this machine, each with an engine. Handles are request ids."""

    is_shared = False
    #: Often, because polling starts the next job.
    poll_seconds = 5.0
    watched_poll_seconds = 0

    def __init__(self, jobs: SpooledJobs) -> None:
        self._jobs = jobs
        # One look at a time, or all threads of this process would wait for the lock.
        self._turn = asyncio.Lock()

    async def submit(self, job: Job) -> str:
        await _in_thread(self._jobs.submit, job)
        await self._look()
        return job.request_id

    async def find(self, request_id: str) -> str | None:
        return request_id if await _in_thread(self._jobs.spool.find, request_id) else None

    async def poll(self, handle: str) -> JobStatus:
        # First, so that an unknown handle is rejected whatever the engine returns.
        await _in_thread(self._jobs.require, handle)
        return await _in_thread(self._jobs.status, handle, await self._look())

    async def poll_many(self, handles: Sequence[str]) -> Mapping[str, JobStatus | RunnerError]:
        """One look at the engine for all of them."""
        look = await self._look()
        return await _in_thread(self._statuses, handles, look)

    def _statuses(self, handles: Sequence[str], look: Snapshot) -> dict[str, JobStatus | RunnerError]:
        return {handle: self._status(handle, look) for handle in handles}

    def _status(self, handle: str, look: Snapshot) -> JobStatus | RunnerError:
        try:
            return self._jobs.status(handle, look)
        except RunnerError as error:
            return error

    async def progress(self, handle: str) -> JobProgress | None:
        return await _in_thread(self._jobs.progress, handle)

    async def cancel(self, handle: str) -> None:
        # A job that ended before this call has not been cancelled.
        await self._look()
        entry = await _in_thread(self._jobs.cancel, handle)
        if entry is not None:
            await _in_thread(self._jobs.stop, entry)

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        return await _in_thread(self._jobs.collect, handle, directory, max_bytes)

    async def close(self) -> None:
        """Nothing is open; jobs continue."""

    async def _look(self) -> Snapshot:
        async with self._turn:
            look = await _in_thread(self._jobs.look)
        for entry in look.stopping:
            await self._stop(entry)
        return look

    async def _stop(self, entry: SpooledJob) -> None:
        try:
            await _in_thread(self._jobs.stop, entry)
        except RunnerUnavailable as error:
            # The next look tries again; other jobs are not affected.
            logger.warning("request %s: it does not stop: %s", entry.request_id, error.__cause__ or error)


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as error:
        raise RunnerUnavailable(f"the data directory cannot be used: {error.strerror}") from error
