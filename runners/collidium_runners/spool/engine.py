"""The interface of engines, which run the jobs of this machine; their folders, limits and final states."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from secrets import token_hex
from signal import Signals
from threading import Thread
from typing import Final, Protocol

from collidium.contracts.runner import Job, JobState, JobStatus
from collidium.settings import GIBIBYTE
from collidium_runners import command
from collidium_runners.outputs import gather, has_tables
from collidium_runners.spool.spool import CANCELLED, TOO_LONG

#: Folder of the folders that are being deleted.
REMOVED: Final = "removed"
#: How many of its entries are looked at for their owner.
_LOOKED_AT: Final = 1000


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Limits of jobs on this machine, from the settings."""

    #: Maximum number of running jobs.
    jobs: int
    #: Maximum memory of a job; 0 for no limit.
    memory_bytes: int
    time_factor: float
    extra_seconds: float
    keep_seconds: float

    def seconds(self, job: Job) -> float:
        """Return the time limit of a job."""
        return job.node_seconds * self.time_factor + self.extra_seconds


class JobFolders:
    """The output and scratch folders of jobs, below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def make(self, request_id: str) -> tuple[Path, Path]:
        """Return the private folders for output and scratch, created if absent."""
        folders = self._part(request_id), self._scratch(request_id)
        for folder in folders:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folders

    def progress(self, request_id: str) -> Path:
        """Return the progress file of a job, in its scratch folder."""
        return self._scratch(request_id) / command.NAME

    def unmounted(self, request_id: str) -> Path:
        """Return a folder of the job that its container does not see, created if absent."""
        folder = self._output(request_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def has_tables(self, request_id: str) -> bool:
        """Whether the job has written any tables. Links do not count: they could lead to any file."""
        return has_tables(self._output(request_id), 0)

    def collect(self, request_id: str, directory: Path, max_bytes: int) -> list[Path]:
        """Put the tables below ``directory``. Raises RunnerRefused if they are missing or too large."""
        return gather(self._output(request_id), range(1), directory, max_bytes)

    def clear(self, request_id: str, *, keep_output: bool) -> None:
        """Delete the folders of a job, except for its output if ``keep_output``."""
        discard(self._scratch(request_id), self._directory / REMOVED)
        if not keep_output:
            discard(self._output(request_id), self._directory / REMOVED)

    def leftovers(self) -> str:
        """Say which folders of ended jobs this user cannot delete; empty for none."""
        return leftovers(self._directory / REMOVED, os.geteuid())

    def with_output(self) -> list[str]:
        """Return the request ids of all jobs with output."""
        return [folder.name for folder in (self._directory / "output").glob("*")]

    def _output(self, request_id: str) -> Path:
        return self._directory / "output" / request_id

    def _part(self, request_id: str) -> Path:
        return self._output(request_id) / "0"

    def _scratch(self, request_id: str) -> Path:
        return self._directory / "scratch" / request_id


def discard(folder: Path, aside: Path) -> None:
    """Remove a folder at once, and delete its files in a thread: a job may have written millions of them.

    The caller holds the lock of the spool. ``aside`` is on the same file system; what killed processes left
    there is deleted, too.
    """
    try:
        aside.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.rename(aside / token_hex(16))
    except FileNotFoundError:
        return
    except OSError:  # of a full disk, for example
        shutil.rmtree(folder, ignore_errors=True)
        return
    Thread(target=_empty, args=(aside,), name="removed-folders", daemon=True).start()


def _empty(aside: Path) -> None:
    for folder in aside.iterdir():
        shutil.rmtree(folder, ignore_errors=True)


def leftovers(aside: Path, uid: int) -> str:
    """Say how many folders in ``aside`` have files of other users than ``uid``, and how to delete them.

    Containers may write them as users of their own; root can delete them.
    """
    if uid == 0 or not aside.is_dir():
        return ""
    folders: list[Path] = []
    with suppress(OSError):  # of a folder that may not be read
        folders = list(aside.iterdir())
    number = sum(any(_owner(path) not in {uid, None} for path in _first(folder)) for folder in folders)
    command = shlex.join(["sudo", "find", str(aside), "-mindepth", "1", "-delete"])
    return f"{number} folders of ended jobs have files of other users: {command}" if number else ""


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except OSError:  # it has just been deleted
        return None


def _first(folder: Path) -> Iterator[Path]:
    """The first entries of a folder, as a job may have written millions of them."""
    yield folder
    with suppress(OSError):  # also one that cannot be read, whose owner was seen
        yield from islice(folder.rglob("*"), _LOOKED_AT)


@dataclass(frozen=True, slots=True)
class Run:
    """A snapshot of a job's container or processes. Times are in seconds since 1970."""

    #: Whether it was created and does not run yet.
    is_new: bool = False
    #: Whether it has ended.
    is_over: bool = False
    #: 0 to 255; above 128 if a signal ended it.
    exit_code: int = 0
    out_of_memory: bool = False
    started: float = 0.0
    finished: float = 0.0
    #: Why its end is unknown, if it is.
    lost: str = ""
    #: Another possible meaning of its exit code.
    doubt: str = ""


class JobEngine(Protocol):
    """Runs jobs by name. All methods may raise RunnerUnavailable."""

    @property
    def program(self) -> str:
        """Its name in the spool."""
        ...

    @property
    def missing(self) -> str:
        """The reason of a failure if the engine no longer knows a started job."""
        ...

    def start(self, job: Job, folders: JobFolders) -> None:
        """Start a job unless it was started. Raises RunnerRefused for a job that will never start."""
        ...

    def stop(self, name: str) -> None:
        """Stop a job, by force if need be; do nothing if it has ended or does not exist."""
        ...

    def remove(self, name: str) -> None:
        """Remove a job, running or not. Raises RunnerRefused if it cannot be removed."""
        ...

    def inspect(self, names: Sequence[str]) -> Mapping[str, Run]:
        """Return the jobs that exist, by name."""
        ...

    def log(self, name: str) -> list[str]:
        """Return the last lines of a job's output, shortened."""
        ...


class JobEngines(Protocol):
    """The engines of this machine."""

    def choose(self) -> JobEngine:
        """Return the engine for new jobs. Raises RunnerUnavailable if it could not start any."""
        ...

    def get(self, program: str) -> JobEngine:
        """Return the engine of an existing job, whatever the settings are now."""
        ...


#: Exit codes of commands that could not be started, and of killed ones.
_NOT_STARTED: Final = frozenset({126, 127})
_KILLED: Final = 137


def node_hours(seconds: float) -> Decimal:
    """Return wall time as node-hours of one node, at least 0, as clocks may be set back."""
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
    """Return the final status of a job that has ended.

    ``stopped`` is why it was stopped, if it was; ``tables`` whether it wrote any; ``memory`` (bytes, 0 for no
    limit) and ``seconds`` are its limits.
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
        return f"its pipeline was killed, most likely for lack of memory{allowed}"
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
    """Return the reason with the last line of the log, if any."""
    return f"{reason}; last line of its log: {log[-1]}" if log else reason
