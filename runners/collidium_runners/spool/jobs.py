"""The jobs of this machine, and the base of runners that run them.

Jobs run without the server. The next call of :meth:`SpooledJobs.look` records the ends of jobs, starts the
next jobs in free slots, and stops jobs that exceed their time limit. Each step holds the lock of the spool,
and is recorded before or after the engine acts so that it can be repeated after any kill.
:class:`SpooledJobs` blocks; the runner calls it in threads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from collidium.contracts.runner import (
    Job,
    JobProgress,
    JobState,
    JobStatus,
    Runner,
    RunnerError,
    RunnerRefused,
    RunnerUnavailable,
)
from collidium_runners.command import job_name, read_progress
from collidium_runners.spool.engine import (
    JobEngine,
    JobEngines,
    JobFolders,
    JobLimits,
    Run,
    ending,
    node_hours,
    with_last_line,
)
from collidium_runners.spool.spool import CANCELLED, TOO_LONG, Spool, SpooledJob

logger = logging.getLogger(__name__)

_RESTARTED: Final = "the machine was restarted while it ran"
_NEVER_BEGAN: Final = JobStatus(JobState.CANCELLED, node_hours(0), "cancelled before it began")
_NOT_STARTED: Final = "it could not be started; the operator's log says why"

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class Snapshot:
    """The state of the jobs at one time."""

    #: Status of each job with a slot, or the error of its engine.
    running: dict[str, JobStatus | RunnerError] = field(default_factory=dict)
    #: Why waiting jobs are not started.
    waiting: str = ""
    #: Jobs to be stopped.
    stopping: list[SpooledJob] = field(default_factory=list)


class SpooledJobs:
    """The jobs below ``directory``."""

    def __init__(self, directory: Path, engines: JobEngines, limits: JobLimits) -> None:
        self.spool = Spool(directory)
        self._folders = JobFolders(directory)
        self._engines = engines
        self._limits = limits

    # -- calls of the runner ---------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Queue a job, to be started when a slot is free.

        Raises RunnerUnavailable if no engine could start it.
        """
        job_name(job.request_id)  # raises RunnerRefused for an invalid id
        if self.spool.find(job.request_id):
            return
        engine = self._engines.choose()
        with self.spool.locked():
            if self.spool.find(job.request_id) is None:
                self.spool.put(SpooledJob(job, engine.program, time.time()))
        self._forget_old_output()

    def look(self) -> Snapshot:
        """Inspect running jobs, record those that ended, and start jobs in free slots."""
        with self.spool.locked():
            look = Snapshot(waiting=f"it waits for a slot: no more than {self._limits.jobs} may run at once")
            for program, entries in groupby(
                sorted(self.spool.started(), key=lambda entry: entry.engine), key=lambda entry: entry.engine
            ):
                self._look_at(program, list(entries), look)
            self._fill(look)
        return look

    def leftovers(self) -> str:
        """Say which folders of ended jobs cannot be deleted; empty for none."""
        return self._folders.leftovers()

    def stop(self, entry: SpooledJob) -> None:
        """Stop a job."""
        self._engines.get(entry.engine).stop(entry.name)

    def status(self, handle: str, look: Snapshot) -> JobStatus:
        """Return the status of a job, from ``look`` and the spool."""
        entry = self.require(handle)
        if entry.status:
            return entry.status
        seen = look.running.get(handle)
        if isinstance(seen, RunnerError):
            raise seen
        if seen is None and entry.launched:
            # Another process has started it since the look.
            return JobStatus(JobState.RUNNING, node_hours(0))
        return seen or JobStatus(JobState.QUEUED, node_hours(0), look.waiting)

    def progress(self, handle: str) -> JobProgress | None:
        """Return the last reported progress of a job."""
        return read_progress(self._folders.progress(handle))

    def cancel(self, handle: str) -> SpooledJob | None:
        """Mark a job as cancelled; return it if its engine must stop it."""
        with self.spool.locked():
            entry = self.spool.find(handle)
            if entry is None or entry.status:
                return None
            if not entry.has_slot:
                self._ended(entry, _NEVER_BEGAN)
                return None
            if not entry.stop:
                entry = self.spool.change(entry, stop=CANCELLED)
            # A job that is not launched yet will not be.
            return entry if entry.launched else None

    def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        """Put the tables of a completed job below ``directory``. Raises RunnerRefused if there are none."""
        status = self.require(handle).status
        if status is None or status.state != JobState.COMPLETED:
            raise RunnerRefused(f"job {handle} has not completed")
        return self._folders.collect(handle, directory, max_bytes)

    def require(self, handle: str) -> SpooledJob:
        """Return the job with that handle. Raises RunnerRefused if there is none."""
        entry = self.spool.find(handle)
        if entry is None:
            raise RunnerRefused(f"there is no job {handle}")
        return entry

    # -- under the lock -----------------------------------------------------------------------------------

    def _look_at(self, program: str, entries: Sequence[SpooledJob], look: Snapshot) -> None:
        try:
            engine = self._engines.get(program)
            runs = engine.inspect([entry.name for entry in entries])
            for entry in entries:
                look.running[entry.request_id] = self._follow(engine, entry, runs.get(entry.name), look)
        except RunnerUnavailable as error:
            for entry in entries:
                look.running.setdefault(entry.request_id, error)

    def _follow(self, engine: JobEngine, entry: SpooledJob, run: Run | None, look: Snapshot) -> JobStatus:
        if entry.status:
            return self._clear(engine, entry, entry.status)
        if not entry.launched:
            return self._launch(engine, entry)
        if run is None:
            return self._end(engine, entry, JobStatus(JobState.FAILED, None, engine.missing))
        if run.is_over:
            return self._finish(engine, entry, run)
        if run.is_new:
            # It was started, but the engine has lost that.
            return self._end(engine, entry, JobStatus(JobState.FAILED, None, _RESTARTED))
        passed = time.time() - run.started
        if not entry.stop and passed > self._limits.seconds(entry.job):
            entry = self.spool.change(entry, stop=TOO_LONG)
        if entry.stop:
            look.stopping.append(entry)
        return JobStatus(JobState.RUNNING, node_hours(passed))

    def _fill(self, look: Snapshot) -> None:
        room = self._limits.jobs - len(self.spool.started())
        for entry in self.spool.waiting()[:room] if room > 0 else ():
            try:
                engine = self._engines.get(entry.engine)
                # Take the slot before the job starts, so that there are never too many.
                started = self.spool.change(entry, has_slot=True)
                look.running[entry.request_id] = self._launch(engine, started)
            except RunnerUnavailable as error:
                logger.warning("request %s waits: %s", entry.request_id, error.__cause__ or error)
                look.waiting = str(error)
                return

    def _launch(self, engine: JobEngine, entry: SpooledJob) -> JobStatus:
        """Start a job unless the engine has started it."""
        if entry.stop:
            return self._end(engine, entry, _NEVER_BEGAN)
        try:
            engine.start(entry.job, self._folders)
        except RunnerRefused as error:
            logger.error("request %s: %s", entry.request_id, error)
            return self._end(engine, entry, JobStatus(JobState.FAILED, node_hours(0), _NOT_STARTED))
        self.spool.change(entry, launched=True)
        return JobStatus(JobState.RUNNING, node_hours(0))

    def _finish(self, engine: JobEngine, entry: SpooledJob, run: Run) -> JobStatus:
        log = tuple(engine.log(entry.name))
        if run.lost and not entry.stop:
            status = JobStatus(JobState.FAILED, None, with_last_line(run.lost, log))
        else:
            status = ending(
                run,
                entry.stop,
                log,
                tables=self._folders.has_tables(entry.request_id),
                memory=self._limits.memory_bytes,
                seconds=self._limits.seconds(entry.job),
            )
        return self._end(engine, entry, status, log)

    def _end(
        self, engine: JobEngine, entry: SpooledJob, status: JobStatus, log: tuple[str, ...] = ()
    ) -> JobStatus:
        # Recorded before the engine removes the job with all information on it.
        return self._clear(engine, self._ended(entry, status, log), status)

    def _ended(self, entry: SpooledJob, status: JobStatus, log: tuple[str, ...] = ()) -> SpooledJob:
        logger.info("request %s: the job has %s: %s", entry.request_id, status.state, status.reason or "done")
        return self.spool.change(entry, status=status, log=log, ended_at=time.time())

    def _clear(self, engine: JobEngine, entry: SpooledJob, status: JobStatus) -> JobStatus:
        """Remove an ended job from its engine, delete all but its output, and free its slot."""
        try:
            engine.remove(entry.name)
        except RunnerRefused as error:
            # It no longer runs, so its slot is free. Operators remove the rest.
            logger.error("request %s: the ended job cannot be removed: %s", entry.request_id, error)
        self._folders.clear(entry.request_id, keep_output=status.state == JobState.COMPLETED)
        self.spool.change(entry, has_slot=False)
        return status

    def _forget_old_output(self) -> None:
        """Delete expired output. Records of jobs are kept for longer."""
        for request_id in self._folders.with_output():
            entry = self.spool.find(request_id)
            if entry is None or (entry.status and time.time() - entry.ended_at > self._limits.keep_seconds):
                self._folders.clear(request_id, keep_output=False)


class SpooledRunner(Runner):
    """Base of runners on this machine. Handles are request ids."""

    is_shared = False
    #: Often, as polling starts the next job.
    poll_seconds = 5.0
    watched_poll_seconds = 0

    def __init__(self, jobs: SpooledJobs) -> None:
        self._jobs = jobs
        # One look at a time, or all threads of this process could wait for the lock of the spool.
        self._turn = asyncio.Lock()

    async def submit(self, job: Job) -> str:
        await _in_thread(self._jobs.submit, job)
        await self._look()
        return job.request_id

    async def find(self, request_id: str) -> str | None:
        return request_id if await _in_thread(self._jobs.spool.find, request_id) else None

    async def poll(self, handle: str) -> JobStatus:
        # First, so that an unknown handle is rejected even if the engine fails.
        await _in_thread(self._jobs.require, handle)
        return await _in_thread(self._jobs.status, handle, await self._look())

    async def poll_many(self, handles: Sequence[str]) -> Mapping[str, JobStatus | RunnerError]:
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

    def leftovers(self) -> str:
        """As the contract promises."""
        return self._jobs.leftovers()

    async def cancel(self, handle: str) -> None:
        # Record jobs that ended before this call, which are not cancelled.
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
            # The next look retries; other jobs are not affected.
            logger.warning("request %s: it does not stop: %s", entry.request_id, error.__cause__ or error)


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as error:
        raise RunnerUnavailable(f"the data directory cannot be used: {error.strerror}") from error
