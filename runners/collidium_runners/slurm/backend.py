"""The interface of the two Slurm backends, and the parsing of squeue, sacct and REST API."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from collidium.contracts.runner import JobState
from collidium.runtime.logs import single_line
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


#: Fields of ``squeue --Format``, each ended by a bar. The name comes last: it alone is written by people.
SQUEUE_FORMAT: Final = ",".join(
    f"{field}:|"
    for field in ("ArrayJobID", "ArrayTaskID", "State", "TimeUsed", "NumNodes", "exit_code", "Reason", "Name")
)
#: Fields of ``sacct --parsable2 --format``.
SACCT_FORMAT: Final = "JobID,State,ElapsedRaw,AllocNodes,ExitCode,JobName"
#: No id, count or time is as large.
_TOO_MUCH: Final = 1e15


def squeue_tasks(printed: str) -> Iterator[ReportedTask]:
    """Tasks from the lines of squeue; lines of another shape are left out."""
    for line in printed.splitlines():
        fields = line.split("|")
        if len(fields) != 9 or not _number(fields[0]):
            continue
        job_id, index, state, used, nodes, wait_status, reason, name, _ = fields
        yield ReportedTask(
            int(job_id),
            name,
            int(index) if index.isdecimal() else None,
            (state,),
            seconds(used) * _number(nodes),
            _number(wait_status),
            reason,
        )


def sacct_tasks(printed: str) -> Iterator[ReportedTask]:
    """Tasks from the lines of sacct: ``12_0|TIMEOUT|60|1|0:0|name``, ``12_[3-5]|CANCELLED by 0|…``."""
    for line in printed.splitlines():
        fields = line.split("|")
        job_id, _, index = fields[0].partition("_")
        if len(fields) != 6 or not _number(job_id):
            continue
        _, state, elapsed, nodes, exit_code, name = fields
        code, _, killer = exit_code.partition(":")
        yield ReportedTask(
            int(job_id),
            name,
            int(index) if index.isdecimal() else None,
            (state.split(" ")[0],),
            float(_number(elapsed) * _number(nodes)),
            _number(code) * 256 + _number(killer),
        )


def seconds(value: str) -> float:
    """``SS``, ``MM:SS``, ``HH:MM:SS`` or ``D-HH:MM:SS`` in seconds; 0 for anything else, as ``INVALID``."""
    days, _, clock = value.rpartition("-")
    try:
        parts = [int(part) for part in clock.split(":")]
        total = int(days or 0)
    except ValueError:
        return 0.0
    return float(total * 86_400 + sum(part * 60**power for power, part in enumerate(reversed(parts))))


def rest_tasks(jobs: Sequence[object], now: float) -> Iterator[ReportedTask]:
    """Tasks from ``jobs`` of the REST API, of which versions write numbers and states in several ways.

    ``now`` is the time, in seconds since 1970, up to which running tasks have used their nodes.
    """
    for job in jobs:
        if isinstance(job, Mapping) and (value := _rest_number(job.get("job_id"))) is not None:
            job_id = _rest_number(job.get("array_job_id")) or value
            index = _rest_number(job.get("array_task_id"))
            yield ReportedTask(
                int(job_id),
                str(job.get("name") or ""),
                None if index is None else int(index),
                _words(job.get("job_state")),
                _node_seconds(job, now),
                _wait_status(job.get("exit_code")),
                str(job.get("state_reason") or ""),
            )


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _node_seconds(job: Mapping[str, Any], now: float) -> float:
    """Start and end are what is planned until it happens."""
    began = _rest_number(job.get("start_time")) or 0
    ended = _rest_number(job.get("end_time")) or 0
    if "PENDING" in _words(job.get("job_state")) or not began:
        return 0.0
    until = min(ended or now, now)
    return max(until - began, 0.0) * (_rest_number(job.get("node_count")) or 0)


def _wait_status(value: object) -> int:
    if isinstance(value, Mapping):
        killer = value.get("signal")
        by = _rest_number(killer.get("id", killer.get("signal_id"))) if isinstance(killer, Mapping) else 0
        return int(_rest_number(value.get("return_code")) or 0) * 256 + int(by or 0)
    return int(_rest_number(value) or 0)


def _rest_number(value: object) -> float | None:
    """``5``, or ``{"set": true, "infinite": false, "number": 5}``; None where there is none."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") else None
    # What Python reads as infinity or as no number is no count and no time either.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _TOO_MUCH:
        return value
    return None


def _number(value: str) -> int:
    return int(value) if value.isdecimal() and len(value) < 16 else 0
