"""What runs the jobs of a spool: container engines, or the operating system. Everything here blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from collidium.contracts.runner import Job
from collidium_runners.spool.spool import JobFolders


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
        """The engine that a job was given to, whatever the settings say by now."""
        ...
