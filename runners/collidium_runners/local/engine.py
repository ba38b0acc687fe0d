"""The runner ``local``, and its engine, which starts processes of the operating system. The engine blocks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Final

from collidium.contracts.runner import PROGRESS_FILE, Job, RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium.runtime import subprocesses
from collidium.runtime.logs import last_line, single_line
from collidium.settings import Settings
from collidium_runners.command import PipelineCommand, job_name
from collidium_runners.local.processes import PROC, boot, with_variable
from collidium_runners.local.records import FolderRecord, JobSpecification, tail
from collidium_runners.local.shepherd import STOP_SECONDS
from collidium_runners.spool.engine import REMOVED, JobFolders, JobLimits, Run, discard
from collidium_runners.spool.jobs import SpooledJobs, SpooledRunner

_BEGIN_SECONDS: Final = 30
#: Seconds that a shepherd may take in addition to the stop time of its pipeline.
_PATIENCE_SECONDS: Final = 5.0
_LOG_LINES: Final = 20
_KILLED: Final = 128 + SIGKILL

_NO_PIPELINE: Final = "the machine has no pipeline to run; the platform's operators see why"
_NOT_BEGUN: Final = "the machine cannot start the job now; the platform's operators see why"
_RESTARTED: Final = "the machine was restarted while it ran"
_KILLED_OUTSIDE: Final = "its processes were killed from outside"


class ShepherdError(Exception):
    """Why no shepherd was started, for operators."""


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Runs the pipeline's command as processes of this machine. It is the only engine of its runner."""

    #: Has a folder for each job, ``processes/<name>``.
    directory: Path
    command: PipelineCommand
    niceness: int
    memory_bytes: int
    program: str = "local"
    missing: str = "the record of its processes was removed before it ended"

    # -- which engine -------------------------------------------------------------------------------------

    def choose(self) -> LocalEngine:
        """Return this engine. Raises RunnerUnavailable if the pipeline's program is missing."""
        self._executable()
        return self

    def get(self, program: str) -> LocalEngine:
        """Return this engine."""
        return self

    def check(self) -> None:
        """Raise ConfigurationError if this machine cannot run jobs."""
        if not (PROC / "self/stat").exists():
            raise ConfigurationError("PLATFORM_RUNNER: local needs Linux with /proc")
        if self._program_path() is None:
            raise ConfigurationError(self._not_found())

    # -- jobs ---------------------------------------------------------------------------------------------

    def start(self, job: Job, folders: JobFolders) -> None:
        record = self._record(job_name(job.request_id))
        if record.started:
            return
        output, scratch = folders.make(job.request_id)
        words = self.command.of_job(job, str(output))
        record.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        record.write(
            JobSpecification(
                words=[self._executable(), *words[1:]],
                environment=job_environment(os.environ, record.name, scratch)
                | {PROGRESS_FILE: str(folders.progress(job.request_id))},
                directory=str(scratch),
                niceness=self.niceness,
                memory_bytes=self.memory_bytes,
            )
        )
        _begin(record)

    def stop(self, name: str) -> None:
        record = self._record(name)
        started = record.started
        if started is None:
            return
        started.shepherd.signal(SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS + _PATIENCE_SECONDS
        while started.shepherd.is_alive:
            if time.monotonic() > deadline:
                _kill(record)
                return
            time.sleep(0.01)

    def remove(self, name: str) -> None:
        record = self._record(name)
        if record.ended is None:
            _kill(record)
        discard(record.folder, record.folder.parent.with_name(REMOVED))

    def inspect(self, names: Sequence[str]) -> Mapping[str, Run]:
        found = {name: self._run(self._record(name)) for name in names}
        return {name: run for name, run in found.items() if run is not None}

    def log(self, name: str) -> list[str]:
        record = self._record(name)
        written = tail(record.folder).decode(errors="replace")
        lines = [single_line(line) for line in written.splitlines() if line.strip()]
        return lines[-_LOG_LINES:]

    def _record(self, name: str) -> FolderRecord:
        return FolderRecord(self.directory / "processes" / name)

    def _run(self, record: FolderRecord) -> Run | None:
        started = record.started
        if started is None:
            return None
        if started.shepherd.is_alive and record.ended is None:
            return Run(started=started.at)
        # Recorded before the shepherd ends, so it is read after the shepherd was seen alive.
        if ended := record.ended:
            return Run(is_over=True, exit_code=ended.exit_code, started=started.at, finished=ended.at)
        _kill(record)
        lost = _KILLED_OUTSIDE if started.shepherd.boot == boot() else _RESTARTED
        return Run(is_over=True, exit_code=_KILLED, started=started.at, finished=time.time(), lost=lost)

    # -- the pipeline -------------------------------------------------------------------------------------

    def _program_path(self) -> str | None:
        found = shutil.which(self.command.program, path=search_path(os.environ))
        # Absolute, as jobs have another working directory.
        return found and str(Path(found).absolute())

    def _executable(self) -> str:
        found = self._program_path()
        if found is None:
            raise RunnerUnavailable(_NO_PIPELINE) from ConfigurationError(self._not_found())
        return found

    def _not_found(self) -> str:
        return f"PLATFORM_PIPELINE_COMMAND: there is no program {self.command.program} on this machine"


def _begin(record: FolderRecord) -> None:
    """Start a shepherd; return when it, or another one for the job, has started."""
    try:
        done = subprocesses.run(
            [sys.executable, "-P", "-m", "collidium_runners.local.shepherd", str(record.folder)],
            _BEGIN_SECONDS,
            directory=record.folder,
            environment=job_environment(os.environ, record.name, record.folder),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunnerUnavailable(_NOT_BEGUN) from error
    if done.returncode:
        raise RunnerUnavailable(_NOT_BEGUN) from ShepherdError(last_line(done.stderr))


def _kill(record: FolderRecord) -> None:
    """Kill all processes of a job and its shepherd. Raises RunnerUnavailable if any survives."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while left := with_variable(MARK, record.name):
        for process in left:
            process.signal(SIGKILL)
        if time.monotonic() > deadline:
            raise RunnerUnavailable("the job does not stop") from ShepherdError(f"still running: {left}")
        time.sleep(0.01)


#: The environment variable that marks the processes of a job, also outside of its session.
MARK: Final = "COLLIDIUM_JOB"

#: Variables that jobs inherit. No proxies, whose URLs may contain passwords.
_KEPT: Final = frozenset({"LANG", "LANGUAGE", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONPATH", "TZ"})


def search_path(environment: Mapping[str, str]) -> str:
    """Return the search path for programs, with those installed with this Python first."""
    return os.pathsep.join([sysconfig.get_path("scripts"), environment.get("PATH", os.defpath)])


def job_environment(environment: Mapping[str, str], name: str, scratch: Path) -> dict[str, str]:
    """Return the environment of the job ``name`` with the home directory ``scratch``."""
    kept = {name: value for name, value in environment.items() if name in _KEPT or name.startswith("LC_")}
    return kept | {
        "PATH": search_path(environment),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        MARK: name,
    }


class LocalRunner(SpooledRunner):
    """Runs each job as processes of this machine."""

    name = "local"
    #: Often, as a poll is cheap.
    poll_seconds = 1.0

    def __init__(self, engine: LocalEngine, limits: JobLimits) -> None:
        super().__init__(SpooledJobs(engine.directory, engine, limits))
        self._engine = engine

    def check(self) -> None:
        self._engine.check()


def local_runner(settings: Settings) -> LocalRunner:
    """Return the runner for the settings.

    Raises :class:`~collidium.errors.ConfigurationError` for an invalid pipeline command.
    """
    limits = JobLimits(
        jobs=settings.local_jobs,
        memory_bytes=settings.local_memory_bytes,
        time_factor=settings.local_time_factor,
        extra_seconds=settings.local_extra_seconds,
        keep_seconds=settings.local_keep_days * 86_400,
    )
    engine = LocalEngine(
        directory=settings.data_dir.absolute() / "local-jobs",
        command=PipelineCommand.parse(settings.pipeline_command),
        niceness=settings.local_niceness,
        memory_bytes=settings.local_memory_bytes,
    )
    return LocalRunner(engine, limits)
