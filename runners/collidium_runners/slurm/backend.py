"""The interface of the two Slurm backends, and the parsing of squeue, sacct and the REST API."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from collidium.contracts.runner import JobState
from collidium.runtime.logs import single_line
from collidium_runners.batch.script import Allocation
from collidium_runners.batch.states import ArrayTaskStatus, state_of


@dataclass(frozen=True, slots=True)
class SlurmSubmission:
    """A job to submit."""

    name: str
    #: Includes ``#SBATCH`` lines, which the REST API ignores.
    script: str
    #: Number of array tasks.
    parts: int
    #: Time limit of each task.
    minutes: int
    allocation: Allocation
    #: The existing working directory.
    directory: Path


@dataclass(frozen=True, slots=True)
class ReportedTask:
    """Slurm's report of an array task."""

    job_id: int
    job_name: str
    #: None for all tasks of the job that are not reported one by one, such as waiting ones.
    index: int | None
    #: The state and its flags.
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

    def status(self, index: int, parts_per_node: int) -> ArrayTaskStatus:
        """Return the status of the task; the time of a shared node is divided by the parts on it."""
        used = None if self.node_seconds is None else self.node_seconds / parts_per_node
        return ArrayTaskStatus(index, self.state, used, self._reason())

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
    """Submits, queries and cancels jobs. All methods raise RunnerUnavailable."""

    @abstractmethod
    async def submit(self, submission: SlurmSubmission) -> int:
        """Submit a job and return its id. If this raises, the job may have been submitted.

        Raises RunnerRefused for a job that will never be accepted.
        """

    @abstractmethod
    async def find_jobs(self, name: str) -> list[int]:
        """Return the ids of the jobs with that name in the queue."""

    @abstractmethod
    async def tasks(self, job_ids: Collection[int]) -> list[ReportedTask]:
        """Return the tasks of at least one job in the queue, in one call."""

    @abstractmethod
    async def accounted(self, job_ids: Collection[int]) -> list[ReportedTask]:
        """Return the tasks of the jobs in the accounting, none if it is disabled."""

    @abstractmethod
    async def cancel(self, job_id: int) -> None:
        """Cancel all tasks of the job."""

    @abstractmethod
    async def close(self) -> None:
        """Close connections. Idempotent."""


#: Fields of ``squeue --Format``, each followed by a bar. The name, which users choose, comes last.
SQUEUE_FORMAT: Final = ",".join(
    f"{field}:|"
    for field in ("ArrayJobID", "ArrayTaskID", "State", "TimeUsed", "NumNodes", "exit_code", "Reason", "Name")
)
#: Fields of ``sacct --parsable2 --format``.
SACCT_FORMAT: Final = "JobID,State,ElapsedRaw,AllocNodes,ExitCode,JobName"
#: Larger than any valid id, count or time.
_TOO_MUCH: Final = 1e15


def squeue_tasks(output: str) -> Iterator[ReportedTask]:
    """Parse tasks from the output of squeue; invalid lines are ignored."""
    for line in output.splitlines():
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


def sacct_tasks(output: str) -> Iterator[ReportedTask]:
    """Parse tasks from sacct: ``12_0|TIMEOUT|60|1|0:0|name``, ``12_[3-5]|CANCELLED by 0|…``."""
    for line in output.splitlines():
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
    """Parse ``SS``, ``MM:SS``, ``HH:MM:SS`` or ``D-HH:MM:SS``; return 0 for anything else, as ``INVALID``."""
    days, _, clock = value.rpartition("-")
    try:
        parts = [int(part) for part in clock.split(":")]
        total = int(days or 0)
    except ValueError:
        return 0.0
    return float(total * 86_400 + sum(part * 60**power for power, part in enumerate(reversed(parts))))


def rest_tasks(jobs: Sequence[object], now: float) -> Iterator[ReportedTask]:
    """Parse tasks from ``jobs`` of the REST API, whose versions differ in the format of numbers and states.

    ``now`` is the current time in seconds since 1970, for the node time of running tasks.
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
    """Return the node time so far; until they happen, start and end are planned times."""
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
    """Parse ``5`` or ``{"set": true, "infinite": false, "number": 5}``; None if there is no number."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") else None
    # The comparison also excludes infinity and NaN.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _TOO_MUCH:
        return value
    return None


def _number(value: str) -> int:
    return int(value) if value.isdecimal() and len(value) < 16 else 0
