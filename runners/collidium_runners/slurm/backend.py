"""The interface of the two Slurm backends, REST API and commands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from collidium.contracts.runner import JobState
from collidium.runtime.text import single_line
from collidium_runners.batch.script import Allocation
from collidium_runners.batch.states import TaskStatus, state_of


@dataclass(frozen=True, slots=True)
class Submission:
    """A job to be queued."""

    name: str
    #: With its own ``#SBATCH`` lines, which the REST API does not read.
    script: str
    #: Number of array tasks.
    parts: int
    #: Time limit of each.
    minutes: int
    allocation: Allocation
    #: The working directory, which exists.
    directory: Path


@dataclass(frozen=True, slots=True)
class ReportedTask:
    """Slurm's report of an array task."""

    job_id: int
    job_name: str
    #: None: all tasks of the job that are not reported one by one, such as waiting ones.
    index: int | None
    #: Slurm's word, and flags if it has any.
    words: tuple[str, ...]
    #: Time since its start, times nodes.
    node_seconds: float | None = None
    #: The exit status of its script, as of wait(2): the signal, or 256 times the exit code.
    wait_status: int = 0
    #: Slurm's reason for its state.
    reason: str = ""

    @property
    def state(self) -> JobState:
        return state_of(*self.words)

    def status(self, index: int, parts_per_node: int) -> TaskStatus:
        """As a status of any batch system; a node shared by parts counts in fractions."""
        used = None if self.node_seconds is None else self.node_seconds / parts_per_node
        return TaskStatus(index, self.state, used, self._reason())

    def _reason(self) -> str | None:
        word = " ".join(self.words).lower().replace("_", " ")
        if self.state == JobState.FAILED and self.words[0] == "FAILED":
            code, killer = self.wait_status >> 8, self.wait_status & 0x7F
            return f"exit code {code}" if code else f"signal {killer}" if killer else word
        if self.state in {JobState.FAILED, JobState.CANCELLED}:
            return word
        if self.state == JobState.UNKNOWN:
            return f"Slurm reports {single_line(word) or 'nothing'}"
        waits = self.state == JobState.QUEUED and self.reason not in {"", "None"}
        return f"waits for {single_line(self.reason)}" if waits else None


class SlurmBackend(ABC):
    """Queues, shows and stops jobs. Methods raise RunnerUnavailable, :meth:`submit` RunnerRefused too."""

    @abstractmethod
    async def submit(self, submission: Submission) -> int:
        """Queue the job and return its id. When it raises, the job may have been queued nevertheless."""

    @abstractmethod
    async def find_jobs(self, name: str) -> list[int]:
        """The ids of the jobs of that name that Slurm remembers."""

    @abstractmethod
    async def tasks(self, job_ids: Collection[int]) -> list[ReportedTask]:
        """The tasks that the queue has of these jobs, at least one, in one call."""

    @abstractmethod
    async def accounted(self, job_ids: Collection[int]) -> list[ReportedTask]:
        """The tasks that accounting has of these jobs; none where it is off."""

    @abstractmethod
    async def cancel(self, job_id: int) -> None:
        """Stop all tasks of the job."""

    @abstractmethod
    async def close(self) -> None:
        """Close connections. Idempotent."""
