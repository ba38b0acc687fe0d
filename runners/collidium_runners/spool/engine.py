"""What runs the jobs of a spool, which blocks, and the final status of a job with its reason as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from signal import Signals
from typing import Final, Protocol

from collidium.contracts.runner import Job, JobState, JobStatus
from collidium.settings import GIBIBYTE
from collidium_runners.spool.spool import CANCELLED, TOO_LONG, JobFolders


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
