"""The jobs of this machine: a small file each, in a folder for where they stand. Everything here blocks.

::

    waiting/<request_id>.json   has no place yet
    started/<request_id>.json   has a place: it runs, or is about to be started or removed
    ended/<request_id>.json     nothing is left but its output; kept, so that a request never runs twice
    lock                        held by every process that changes any of it

A job moves forwards only: its new file is there before the old one goes, so that a reader who looks in that
order always finds it.

Engines run the jobs; the final status of a job has its reason as text.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from signal import Signals
from typing import Any, Final, Protocol

import msgspec

from collidium.contracts.runner import Job, JobState, JobStatus, RunnerUnavailable
from collidium.files import durable
from collidium.files.held import locked
from collidium.settings import GIBIBYTE
from collidium_runners import command
from collidium_runners.command import REQUEST_ID, job_name
from collidium_runners.outputs import gather, has_tables

logger = logging.getLogger(__name__)

_FOLDERS: Final = ("waiting", "started", "ended")

#: Why a job is being stopped.
CANCELLED: Final = "cancelled"
TOO_LONG: Final = "too long"


@dataclass(frozen=True, slots=True)
class SpooledJob:
    """A job and its state."""

    job: Job
    #: The engine that it was given to.
    engine: str
    submitted_at: float
    #: Whether it has one of the places for jobs that run.
    has_slot: bool = False
    #: Whether its engine has started it.
    launched: bool = False
    #: Why it is being stopped, if it is.
    stop: str | None = None
    #: What became of it, once it ended.
    status: JobStatus | None = None
    ended_at: float = 0.0
    #: The last lines of its log.
    log: tuple[str, ...] = ()

    @property
    def request_id(self) -> str:
        return self.job.request_id

    @property
    def name(self) -> str:
        """What its engine knows it by."""
        return job_name(self.request_id)

    @property
    def folder(self) -> str:
        """The folder that its file is in."""
        return "started" if self.has_slot else "ended" if self.status else "waiting"


class Spool:
    """The jobs below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock against all other processes and threads."""
        for place in _FOLDERS:
            (self.directory / place).mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.directory / "lock"):
            yield

    def find(self, request_id: str) -> SpooledJob | None:
        """The job of a request, None when there is none."""
        if not REQUEST_ID.fullmatch(request_id):
            return None
        entries = (self._read(self._file(place, request_id)) for place in _FOLDERS)
        return next((entry for entry in entries if entry), None)

    def waiting(self) -> list[SpooledJob]:
        """Jobs without a place, the longest waiting first. The caller holds the lock."""
        return self._all("waiting", ("started", "ended"))

    def started(self) -> list[SpooledJob]:
        """Jobs that have a place, the longest waiting first. The caller holds the lock."""
        return self._all("started", ("ended",))

    def put(self, entry: SpooledJob) -> SpooledJob:
        """Store the state of a job durably. The caller holds the lock."""
        file = self._file(entry.folder, entry.request_id)
        durable.replace(file, msgspec.json.encode(entry).decode())
        for place in _FOLDERS[: _FOLDERS.index(entry.folder)]:
            self._file(place, entry.request_id).unlink(missing_ok=True)
        return entry

    def change(self, entry: SpooledJob, **changes: Any) -> SpooledJob:
        """Store a job with these changes and return it."""
        return self.put(replace(entry, **changes))

    def _all(self, place: str, later: tuple[str, ...]) -> list[SpooledJob]:
        entries = []
        for file in (self.directory / place).glob("*.json"):
            # A process killed between two writes left both.
            if any(self._file(other, file.stem).exists() for other in later):
                file.unlink()
            elif entry := self._read_if_sound(file):
                entries.append(entry)
        return sorted(entries, key=lambda entry: (entry.submitted_at, entry.request_id))

    def _read_if_sound(self, file: Path) -> SpooledJob | None:
        """None for a damaged file: the caller of that job gets an error, and other jobs continue."""
        try:
            return self._read(file)
        except RunnerUnavailable as error:
            logger.error("%s", error.__cause__)
            return None

    def _file(self, place: str, request_id: str) -> Path:
        return self.directory / place / f"{request_id}.json"

    def _read(self, file: Path) -> SpooledJob | None:
        try:
            return msgspec.json.decode(file.read_bytes(), type=SpooledJob)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            damaged = ValueError(f"{file} describes no job: {error!r}")
            raise RunnerUnavailable("the record of the job is damaged") from damaged


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Limits of jobs on this machine, from the settings."""

    #: How many run at once.
    jobs: int
    #: What one may use; 0: no limit.
    memory_bytes: int
    time_factor: float
    extra_seconds: float
    keep_seconds: float

    def seconds(self, job: Job) -> float:
        """The time limit of a job."""
        return job.node_seconds * self.time_factor + self.extra_seconds


class JobFolders:
    """The folders of all jobs, below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def make(self, request_id: str) -> tuple[Path, Path]:
        """The folders for output and scratch, made if need be, for this account alone."""
        folders = self._part(request_id), self._scratch(request_id)
        for folder in folders:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folders

    def progress(self, request_id: str) -> Path:
        """The file in its scratch folder that a job writes its progress in."""
        return self._scratch(request_id) / command.NAME

    def unmounted(self, request_id: str) -> Path:
        """A folder of the job that a container does not see, made if need be."""
        folder = self._output(request_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def has_tables(self, request_id: str) -> bool:
        """Whether there is any output; a link is none: it could lead to any file of the server."""
        return has_tables(self._output(request_id), 0)

    def collect(self, request_id: str, directory: Path, max_bytes: int) -> list[Path]:
        """Put the tables below ``directory``; raises RunnerRefused when they are gone or too large."""
        return gather(self._output(request_id), range(1), directory, max_bytes)

    def clear(self, request_id: str, *, keep_output: bool) -> None:
        """Delete what a job leaves, all or all but its output."""
        shutil.rmtree(self._scratch(request_id), ignore_errors=True)
        if not keep_output:
            shutil.rmtree(self._output(request_id), ignore_errors=True)

    def with_output(self) -> list[str]:
        """The request ids of all jobs that have output here."""
        return [folder.name for folder in (self._directory / "output").glob("*")]

    def _output(self, request_id: str) -> Path:
        return self._directory / "output" / request_id

    def _part(self, request_id: str) -> Path:
        return self._output(request_id) / "0"

    def _scratch(self, request_id: str) -> Path:
        return self._directory / "scratch" / request_id


@dataclass(frozen=True, slots=True)
class Run:
    """A job's container or processes, as seen once; times in seconds since 1970."""

    #: Whether it was made and does not run yet.
    is_new: bool = False
    #: Whether it will not run any more.
    is_over: bool = False
    #: 0 to 255; above 128: the signal that ended it.
    exit_code: int = 0
    out_of_memory: bool = False
    started: float = 0.0
    finished: float = 0.0
    #: Why its end is unknown, if it is.
    lost: str = ""
    #: What else its exit code may mean.
    doubt: str = ""


class Engine(Protocol):
    """Runs jobs under their names. Every method may raise RunnerUnavailable."""

    @property
    def program(self) -> str:
        """Its name in the spool."""
        ...

    @property
    def missing(self) -> str:
        """The reason of a failure if the engine does not know a started job any more."""
        ...

    def start(self, job: Job, folders: JobFolders) -> None:
        """Start a job, as far as that has not happened yet.

        Raises RunnerRefused for a job that will never start.
        """
        ...

    def stop(self, name: str) -> None:
        """End a job, by force if it must be; nothing happens when it has ended or is not there."""
        ...

    def remove(self, name: str) -> None:
        """Remove what there is of a job, running or not; raises RunnerRefused when it stays."""
        ...

    def inspect(self, names: Sequence[str]) -> Mapping[str, Run]:
        """The jobs that exist, by name."""
        ...

    def log(self, name: str) -> list[str]:
        """The last lines that a job wrote, each cut short."""
        ...


class Engines(Protocol):
    """The engines of this machine."""

    def choose(self) -> Engine:
        """The engine of new jobs; raises RunnerUnavailable while it could start none."""
        ...

    def get(self, program: str) -> Engine:
        """The engine that a job was given to; the settings may have changed since."""
        ...


#: Exit codes of what could not be started, and of what was killed.
_NOT_STARTED: Final = frozenset({126, 127})
_KILLED: Final = 137


def node_hours(seconds: float) -> Decimal:
    """Wall time on this machine, which counts as one node; never negative, as clocks may be set back."""
    return Decimal(max(seconds, 0.0) / 3600).quantize(Decimal("0.001"))


def ending(
    run: Run,
    stopped: str | None,
    log: Sequence[str],
    *,
    tables: bool,
    memory: int,
    seconds: float,
) -> JobStatus:
    """What became of a job that is over.

    ``stopped`` is why we stopped it, if we did; ``tables`` whether it wrote any; ``memory`` (bytes; 0:
    any) and ``seconds`` are what it was allowed.
    """
    used = node_hours(run.finished - run.started)
    if stopped == CANCELLED:
        return JobStatus(JobState.CANCELLED, used, f"cancelled: {_code(run.exit_code)}")
    if stopped == TOO_LONG:
        return JobStatus(JobState.FAILED, used, f"it was stopped after its time limit of {seconds:.0f} s")
    if run.exit_code == 0 and tables:
        return JobStatus(JobState.COMPLETED, used)
    return JobStatus(JobState.FAILED, used, with_last_line(_failure(run, memory), log))


def _failure(run: Run, memory: int) -> str:
    allowed = f": it may use {memory / GIBIBYTE:.3g} GiB" if memory else ""
    if run.out_of_memory:
        return f"its pipeline ran out of memory{allowed}"
    if run.exit_code == 0:
        return "its pipeline ended well but wrote no tables"
    if run.exit_code == _KILLED:
        return f"its pipeline was killed, most likely for want of memory{allowed}"
    if run.exit_code in _NOT_STARTED:
        return f"its pipeline cannot be started: {_code(run.exit_code)}"
    failure = f"its pipeline failed: {_code(run.exit_code)}"
    return f"{failure}, {run.doubt}" if run.doubt else failure


def _code(code: int) -> str:
    try:
        return f"exit code {code} ({Signals(code - 128).name})"
    except ValueError:
        return f"exit code {code}"


def with_last_line(reason: str, log: Sequence[str]) -> str:
    """The reason, and what the job wrote last if it wrote anything."""
    return f"{reason}; last line of its log: {log[-1]}" if log else reason
