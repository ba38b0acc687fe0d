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
from collidium.errors import ConfigurationError
from collidium_runners.container.containers import OUTPUT, Container, options
from collidium_runners.container.endings import ending, node_hours
from collidium_runners.container.engine import Engine, Engines
from collidium_runners.container.folders import Folders
from collidium_runners.container.spool import CANCELLED, TOO_LONG, Entry, Spool
from collidium_runners.container.terms import Terms
from collidium_runners.pipeline.naming import job_name

logger = logging.getLogger(__name__)

_GONE: Final = "its container was removed before it ended"
_RESTARTED: Final = "the machine was restarted while it ran"
_NEVER_BEGAN: Final = JobStatus(JobState.CANCELLED, node_hours(0), "cancelled before it began")
_NO_IMAGE: Final = "the machine has no pipeline to run; the platform's operators see why"
_NOT_MADE: Final = "the container engine would not start it; the operator's log says why"


@dataclass(slots=True)
class Look:
    """What was seen at one time."""

    #: Of every job that has a place; an error where its engine does not answer.
    running: dict[str, JobStatus | RunnerError] = field(default_factory=dict)
    #: Why what waits is not started.
    waiting: str = ""
    #: Containers to be stopped.
    stopping: list[Entry] = field(default_factory=list)


class ContainerJobs:
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

        Raises RunnerUnavailable while no engine answers or the image is missing.
        """
        job_name(job.request_id)  # refuses what can name no container
        if self.spool.find(job.request_id):
            return
        engine = self._engines.choose()
        self._require_image(engine)
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
        """End the container of a job that is being stopped."""
        self._engines.get(entry.engine).stop(entry.container)

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
        """Note that a job is to stop; returns it if its container must be stopped."""
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

    def collect(self, handle: str, directory: Path) -> list[Path]:
        """Put the tables of a completed job below ``directory``; raises RunnerRefused without any."""
        status = self.require(handle).status
        if status is None or status.state != JobState.COMPLETED:
            raise RunnerRefused(f"job {handle} has not completed")
        return self._folders.collect(handle, directory)

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
            containers = engine.inspect([entry.container for entry in entries])
            for entry in entries:
                look.running[entry.request_id] = self._follow(
                    engine, entry, containers.get(entry.container), look
                )
        except RunnerUnavailable as error:
            for entry in entries:
                look.running.setdefault(entry.request_id, error)

    def _follow(self, engine: Engine, entry: Entry, container: Container | None, look: Look) -> JobStatus:
        if entry.status:
            return self._clear(engine, entry, entry.status)
        if not entry.launched:
            return self._launch(engine, entry)
        if container is None:
            return self._end(engine, entry, JobStatus(JobState.FAILED, None, _GONE))
        if container.is_over:
            return self._finish(engine, entry, container)
        if container.is_new:
            # It was started, and its engine knows nothing of that any more.
            return self._end(engine, entry, JobStatus(JobState.FAILED, None, _RESTARTED))
        passed = self._clock() - container.started
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
                # The place is taken before the container is made: so there is never one too many.
                started = self.spool.change(entry, has_place=True)
                look.running[entry.request_id] = self._launch(engine, started)
            except RunnerUnavailable as error:
                logger.warning("request %s waits: %s", entry.request_id, error.__cause__ or error)
                look.waiting = str(error)
                return

    def _launch(self, engine: Engine, entry: Entry) -> JobStatus:
        """Start the container of a job, as far as that has not happened yet."""
        if entry.stop:
            return self._end(engine, entry, _NEVER_BEGAN)
        try:
            if self._must_be_started(engine, entry):
                engine.start(entry.container, self._folders.unmounted(entry.request_id))
        except RunnerRefused as error:
            logger.error("request %s: %s", entry.request_id, error)
            return self._end(engine, entry, JobStatus(JobState.FAILED, node_hours(0), _NOT_MADE))
        self.spool.change(entry, launched=True)
        return JobStatus(JobState.RUNNING, node_hours(0))

    def _must_be_started(self, engine: Engine, entry: Entry) -> bool:
        """Make the container if it is not there; whether it does not run yet."""
        name = entry.container
        made = engine.inspect([name]).get(name)
        if made is None:
            try:
                self._create(engine, entry)
            except RunnerRefused:
                # The client of a process that was killed may have been faster.
                made = engine.inspect([name]).get(name)
                if made is None:
                    raise
        return made is None or made.is_new

    def _create(self, engine: Engine, entry: Entry) -> None:
        output, scratch = self._folders.make(entry.request_id)
        job = entry.job
        words = self._terms.command.arguments(
            {
                "channel": job.channel,
                "events": job.events,
                "pileup": job.pileup,
                "seed": job.seed,
                "first_event": 0,
                "output": OUTPUT,
                "request_id": job.request_id,
            }
        )
        allowance = self._terms.allowance
        engine.create(
            options(entry.container, allowance, output, scratch, rootless=engine.rootless),
            self._terms.image,
            words,
        )

    def _finish(self, engine: Engine, entry: Entry, container: Container) -> JobStatus:
        log = tuple(engine.log(entry.container))
        status = ending(
            container,
            entry.stop,
            log,
            tables=self._folders.has_tables(entry.request_id),
            memory=self._terms.allowance.memory_bytes,
            seconds=self._terms.seconds(entry.job),
        )
        return self._end(engine, entry, status, log)

    def _end(self, engine: Engine, entry: Entry, status: JobStatus, log: tuple[str, ...] = ()) -> JobStatus:
        # Written down first: with the container goes all that could be known of it.
        return self._clear(engine, self._ended(entry, status, log), status)

    def _ended(self, entry: Entry, status: JobStatus, log: tuple[str, ...] = ()) -> Entry:
        logger.info("request %s: container %s: %s", entry.request_id, status.state, status.reason or "done")
        return self.spool.change(entry, status=status, log=log, ended_at=self._clock())

    def _clear(self, engine: Engine, entry: Entry, status: JobStatus) -> JobStatus:
        """Remove what an ended job leaves but its output, and give its place to others."""
        try:
            engine.remove(entry.container)
        except RunnerRefused as error:
            # It runs no more, so it takes nobody's place; what is left is the operator's to see to.
            logger.error("request %s: its container cannot be removed: %s", entry.request_id, error)
        self._folders.clear(entry.request_id, keep_output=status.state == JobState.COMPLETED)
        self.spool.change(entry, has_place=False)
        return status

    # -- before a job is taken ---------------------------------------------------------------------------

    def _require_image(self, engine: Engine) -> None:
        image = self._terms.image
        if not image:
            raise RunnerUnavailable(_NO_IMAGE) from ConfigurationError("PLATFORM_CONTAINER_IMAGE is not set")
        if not engine.has_image(image):
            missing = f"{engine.program} has no image {image}: fetch it with `{engine.program} pull {image}`"
            raise RunnerUnavailable(_NO_IMAGE) from ConfigurationError(missing)

    def _forget_old_output(self) -> None:
        """Delete output that was kept long enough; that the job was there stays known."""
        for request_id in self._folders.with_output():
            entry = self.spool.find(request_id)
            if entry and entry.status and self._clock() - entry.ended_at > self._terms.keep_seconds:
                self._folders.clear(request_id, keep_output=False)
