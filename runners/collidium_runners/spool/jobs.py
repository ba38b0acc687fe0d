"""What is done with the jobs of this machine, by whichever process asks. Everything here blocks.

Nobody has to be there for a job to go on, but for three things, which whoever asks next does: an end is
written down, the next job gets the place, and what runs too long is stopped. Each is done under the lock of
the spool, written down before or after the engine's part so that it can be done again, and so survives any
kill.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from collidium.contracts.runner import (
    Job,
    JobState,
    JobStatus,
    RunnerError,
    RunnerRefused,
    RunnerUnavailable,
)
from collidium_runners.pipeline.naming import job_name
from collidium_runners.spool.endings import ending, node_hours, with_last_line
from collidium_runners.spool.engine import Engine, Engines, Run
from collidium_runners.spool.folders import Folders
from collidium_runners.spool.spool import CANCELLED, TOO_LONG, Entry, Spool, Terms

logger = logging.getLogger(__name__)

_RESTARTED: Final = "the machine was restarted while it ran"
_NEVER_BEGAN: Final = JobStatus(JobState.CANCELLED, node_hours(0), "cancelled before it began")
_NOT_STARTED: Final = "it could not be started; the operator's log says why"


@dataclass(slots=True)
class Look:
    """What was seen at one time."""

    #: Of every job that has a place; an error where its engine does not answer.
    running: dict[str, JobStatus | RunnerError] = field(default_factory=dict)
    #: Why what waits is not started.
    waiting: str = ""
    #: Jobs to be stopped.
    stopping: list[Entry] = field(default_factory=list)


class SpooledJobs:
    """The jobs below ``directory``; ``clock`` gives seconds since 1970."""

    def __init__(
        self, directory: Path, engines: Engines, terms: Terms, clock: Callable[[], float] = time.time
    ) -> None:
        self.spool = Spool(directory)
        self._folders = Folders(directory)
        self._engines = engines
        self._terms = terms
        self._clock = clock

    # -- what a runner is asked ---------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Keep the job, to be started when there is a place.

        Raises RunnerUnavailable while no engine could start it.
        """
        job_name(job.request_id)  # refuses what can name no job
        if self.spool.find(job.request_id):
            return
        engine = self._engines.choose()
        with self.spool.locked():
            if self.spool.find(job.request_id) is None:
                self.spool.put(Entry(job, engine.program, self._clock()))
        self._forget_old_output()

    def look(self) -> Look:
        """See what runs, write down what ended, and start what has a place now."""
        with self.spool.locked():
            look = Look(waiting=f"it waits for a place: no more than {self._terms.jobs} may run at once")
            for program, entries in groupby(
                sorted(self.spool.started(), key=lambda entry: entry.engine), key=lambda entry: entry.engine
            ):
                self._look_at(program, list(entries), look)
            self._fill(look)
        return look

    def stop(self, entry: Entry) -> None:
        """End a job that is being stopped."""
        self._engines.get(entry.engine).stop(entry.name)

    def status(self, handle: str, look: Look) -> JobStatus:
        """What ``look``, and what was written down before and since, say of a job."""
        entry = self.require(handle)
        if entry.status:
            return entry.status
        seen = look.running.get(handle)
        if isinstance(seen, RunnerError):
            raise seen
        if seen is None and entry.launched:
            # By another process, since the look.
            return JobStatus(JobState.RUNNING, node_hours(0))
        return seen or JobStatus(JobState.QUEUED, node_hours(0), look.waiting)

    def cancel(self, handle: str) -> Entry | None:
        """Note that a job is to stop; returns it if its engine must stop it."""
        with self.spool.locked():
            entry = self.spool.find(handle)
            if entry is None or entry.status:
                return None
            if not entry.has_place:
                self._ended(entry, _NEVER_BEGAN)
                return None
            if not entry.stop:
                entry = self.spool.change(entry, stop=CANCELLED)
            # What is not launched is not going to be.
            return entry if entry.launched else None

    def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        """Put the tables of a completed job below ``directory``; raises RunnerRefused without any."""
        status = self.require(handle).status
        if status is None or status.state != JobState.COMPLETED:
            raise RunnerRefused(f"job {handle} has not completed")
        return self._folders.collect(handle, directory, max_bytes)

    def require(self, handle: str) -> Entry:
        """The job of that handle; raises RunnerRefused for none."""
        entry = self.spool.find(handle)
        if entry is None:
            raise RunnerRefused(f"there is no job {handle}")
        return entry

    # -- under the lock -----------------------------------------------------------------------------------

    def _look_at(self, program: str, entries: Sequence[Entry], look: Look) -> None:
        try:
            engine = self._engines.get(program)
            runs = engine.inspect([entry.name for entry in entries])
            for entry in entries:
                look.running[entry.request_id] = self._follow(engine, entry, runs.get(entry.name), look)
        except RunnerUnavailable as error:
            for entry in entries:
                look.running.setdefault(entry.request_id, error)

    def _follow(self, engine: Engine, entry: Entry, run: Run | None, look: Look) -> JobStatus:
        if entry.status:
            return self._clear(engine, entry, entry.status)
        if not entry.launched:
            return self._launch(engine, entry)
        if run is None:
            return self._end(engine, entry, JobStatus(JobState.FAILED, None, engine.missing))
        if run.is_over:
            return self._finish(engine, entry, run)
        if run.is_new:
            # It was started, and its engine knows nothing of that any more.
            return self._end(engine, entry, JobStatus(JobState.FAILED, None, _RESTARTED))
        passed = self._clock() - run.started
        if not entry.stop and passed > self._terms.seconds(entry.job):
            entry = self.spool.change(entry, stop=TOO_LONG)
        if entry.stop:
            look.stopping.append(entry)
        return JobStatus(JobState.RUNNING, node_hours(passed))

    def _fill(self, look: Look) -> None:
        room = self._terms.jobs - len(self.spool.started())
        # Who waits is read for those who get a place only: it may be many.
        for entry in self.spool.waiting()[:room] if room > 0 else ():
            try:
                engine = self._engines.get(entry.engine)
                # The place is taken before the job starts: so there is never one too many.
                started = self.spool.change(entry, has_place=True)
                look.running[entry.request_id] = self._launch(engine, started)
            except RunnerUnavailable as error:
                logger.warning("request %s waits: %s", entry.request_id, error.__cause__ or error)
                look.waiting = str(error)
                return

    def _launch(self, engine: Engine, entry: Entry) -> JobStatus:
        """Start a job, as far as that has not happened yet."""
        if entry.stop:
            return self._end(engine, entry, _NEVER_BEGAN)
        try:
            engine.start(entry.job, self._folders)
        except RunnerRefused as error:
            logger.error("request %s: %s", entry.request_id, error)
            return self._end(engine, entry, JobStatus(JobState.FAILED, node_hours(0), _NOT_STARTED))
        self.spool.change(entry, launched=True)
        return JobStatus(JobState.RUNNING, node_hours(0))

    def _finish(self, engine: Engine, entry: Entry, run: Run) -> JobStatus:
        log = tuple(engine.log(entry.name))
        if run.lost and not entry.stop:
            status = JobStatus(JobState.FAILED, None, with_last_line(run.lost, log))
        else:
            status = ending(
                run,
                entry.stop,
                log,
                tables=self._folders.has_tables(entry.request_id),
                memory=self._terms.memory_bytes,
                seconds=self._terms.seconds(entry.job),
            )
        return self._end(engine, entry, status, log)

    def _end(self, engine: Engine, entry: Entry, status: JobStatus, log: tuple[str, ...] = ()) -> JobStatus:
        # Written down first: with what the engine removes goes all that could be known of it.
        return self._clear(engine, self._ended(entry, status, log), status)

    def _ended(self, entry: Entry, status: JobStatus, log: tuple[str, ...] = ()) -> Entry:
        logger.info("request %s: the job has %s: %s", entry.request_id, status.state, status.reason or "done")
        return self.spool.change(entry, status=status, log=log, ended_at=self._clock())

    def _clear(self, engine: Engine, entry: Entry, status: JobStatus) -> JobStatus:
        """Remove what an ended job leaves but its output, and give its place to others."""
        try:
            engine.remove(entry.name)
        except RunnerRefused as error:
            # It runs no more, so it takes nobody's place; what is left is the operator's to see to.
            logger.error("request %s: what is left of it cannot be removed: %s", entry.request_id, error)
        self._folders.clear(entry.request_id, keep_output=status.state == JobState.COMPLETED)
        self.spool.change(entry, has_place=False)
        return status

    def _forget_old_output(self) -> None:
        """Delete output that was kept long enough; that the job was there stays known."""
        for request_id in self._folders.with_output():
            entry = self.spool.find(request_id)
            if entry and entry.status and self._clock() - entry.ended_at > self._terms.keep_seconds:
                self._folders.clear(request_id, keep_output=False)
