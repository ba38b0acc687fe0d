"""Slurm's states, the status of a job with many array tasks, and the base of runners of such jobs.

Source of the states: "JOB STATE CODES" of squeue and sacct, Slurm 20.02 to 24.11.

Array tasks also write records, ``status/<job id>_<index>``, when they end (``part.sh``), as the batch system
forgets ended jobs.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final, Self
from weakref import WeakValueDictionary

from collidium.contracts.runner import (
    JobState,
    JobStatus,
    Runner,
    RunnerError,
    RunnerRefused,
    RunnerUnavailable,
)
from collidium_runners.command import REQUEST_ID

#: Slurm's states, their short forms (empty if none), and ours. Jobs that were requeued or are held are still
#: followed: they run again, or are cancelled.
TABLE: Final = (
    ("BOOT_FAIL", "BF", JobState.FAILED),
    ("CANCELLED", "CA", JobState.CANCELLED),
    ("COMPLETED", "CD", JobState.COMPLETED),
    ("COMPLETING", "CG", JobState.RUNNING),
    ("CONFIGURING", "CF", JobState.QUEUED),
    ("DEADLINE", "DL", JobState.FAILED),
    ("EXPEDITING", "EX", JobState.RUNNING),
    ("FAILED", "F", JobState.FAILED),
    ("LAUNCH_FAILED", "LF", JobState.FAILED),
    ("NODE_FAIL", "NF", JobState.FAILED),
    ("OUT_OF_MEMORY", "OOM", JobState.FAILED),
    ("PENDING", "PD", JobState.QUEUED),
    ("POWER_UP_NODE", "PN", JobState.QUEUED),
    ("PREEMPTED", "PR", JobState.FAILED),
    ("RECONFIG_FAIL", "", JobState.FAILED),
    ("REQUEUED", "RQ", JobState.QUEUED),
    ("REQUEUE_FED", "RF", JobState.QUEUED),
    ("REQUEUE_HOLD", "RH", JobState.QUEUED),
    ("RESIZING", "RS", JobState.RUNNING),
    ("RESV_DEL_HOLD", "RD", JobState.QUEUED),
    # It runs in another cluster of the federation, which this one cannot query.
    ("REVOKED", "RV", JobState.UNKNOWN),
    ("RUNNING", "R", JobState.RUNNING),
    ("SIGNALING", "SI", JobState.RUNNING),
    ("SPECIAL_EXIT", "SE", JobState.QUEUED),
    ("STAGE_OUT", "SO", JobState.RUNNING),
    ("STOPPED", "ST", JobState.RUNNING),
    ("SUSPENDED", "S", JobState.RUNNING),
    ("TIMEOUT", "TO", JobState.FAILED),
    ("UPDATE_DB", "UD", JobState.RUNNING),
)

_STATES: Final = {word: state for full, short, state in TABLE for word in (full, short) if word}
#: If a task has several states, the first of these counts: with a flag such as COMPLETING, a completed task
#: has not ended.
_STRONGEST: Final = (
    JobState.UNKNOWN,
    JobState.QUEUED,
    JobState.RUNNING,
    JobState.FAILED,
    JobState.CANCELLED,
    JobState.COMPLETED,
)
_HANDLE: Final = re.compile(rf"([1-9]\d{{0,17}})\.([1-9]\d{{0,5}})\.({REQUEST_ID.pattern})", re.ASCII)


def state_of(*words: str) -> JobState:
    """Return the state for Slurm's words, or ``JobState.UNKNOWN``.

    Words are ``COMPLETED``, ``CD``, ``CANCELLED by 0``, ``CANCELLED+``, or a state and its flags.
    """
    states = {_STATES.get(_word(text), JobState.UNKNOWN) for text in words}
    return next((state for state in _STRONGEST if state in states), JobState.UNKNOWN)


def _word(text: str) -> str:
    return (text.upper().split() or [""])[0].rstrip("+")


@dataclass(frozen=True, slots=True)
class ArrayTaskStatus:
    """The status of an array task, which simulates one part."""

    index: int
    state: JobState
    #: Node time so far; None if unknown.
    node_seconds: float | None = None
    #: Reason for the state, without secrets: "timeout", "exit code 3".
    reason: str | None = None


def job_status(tasks: Collection[ArrayTaskStatus], parts: int) -> JobStatus:
    """Return the status of a job with ``parts`` parts from those of its tasks.

    A job has ended when all tasks have: completed if all completed, else failed if any failed, else
    cancelled. Before, it is unknown if any task is, queued if no task has started, and running otherwise. A
    part without a task is unknown. Node-hours are summed over the tasks that report them.
    """
    reached = {task.state for task in tasks}
    if len(tasks) < parts:
        reached.add(JobState.UNKNOWN)
    state = _together(reached)
    completed = sum(task.state == JobState.COMPLETED for task in tasks) if not state.has_ended else 0
    return JobStatus(state, _node_hours(tasks), _reason(tasks, parts), completed)


def _together(reached: set[JobState]) -> JobState:
    if JobState.UNKNOWN in reached:
        return JobState.UNKNOWN
    if reached == {JobState.QUEUED}:
        return JobState.QUEUED
    if not all(state.has_ended for state in reached):
        return JobState.RUNNING
    return next(state for state in _STRONGEST if state in reached)


def _node_hours(tasks: Collection[ArrayTaskStatus]) -> Decimal | None:
    known = [task.node_seconds for task in tasks if task.node_seconds is not None]
    return Decimal(sum(known) / 3600).quantize(Decimal("0.001")) if known else None


def _reason(tasks: Collection[ArrayTaskStatus], parts: int) -> str | None:
    """Return the first reason of the worst state, and the number of tasks in that state."""
    for state in (JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN, JobState.QUEUED):
        concerned: Sequence[ArrayTaskStatus] = sorted(
            (task for task in tasks if task.state == state), key=lambda task: task.index
        )
        explained = [task for task in concerned if task.reason]
        if explained and parts == 1:
            return explained[0].reason
        if explained:
            return (
                f"{len(concerned)} of {parts} parts {state}; part {explained[0].index}: {explained[0].reason}"
            )
    return None


#: More than any exit code or time in seconds.
_TOO_MUCH: Final = 1e12
#: Exit code of a shell that SIGTERM ended.
_TERMINATED = 143


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """The end of a task. Times are in seconds since 1970 by the clock of its node."""

    exit_code: int
    began: float
    ended: float

    @classmethod
    def parse(cls, text: str | bytes) -> Self | None:
        """Parse a record; return None for invalid input, such as an incomplete file."""
        try:
            data = json.loads(text)
            numbers = [float(data[name]) for name in ("exit_code", "began", "ended")]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None
        if not all(abs(number) < _TOO_MUCH for number in numbers):  # also infinity and NaN
            return None
        code, began, ended = numbers
        return cls(int(code), began, ended)

    def status(self, index: int, parts_per_node: int = 1, *, cancelled: bool = False) -> ArrayTaskStatus:
        """Return the status of the task; the time of a shared node is divided by the parts on it.

        If the job was to be ``cancelled``, a task that SIGTERM ended is cancelled. Otherwise the task reached
        its time limit, or an operator ended it.
        """
        seconds = max(self.ended - self.began, 0.0) / parts_per_node
        if self.exit_code == 0:
            return ArrayTaskStatus(index, JobState.COMPLETED, seconds)
        if self.exit_code == _TERMINATED and cancelled:
            return ArrayTaskStatus(index, JobState.CANCELLED, seconds, "cancelled")
        reason = "terminated" if self.exit_code == _TERMINATED else f"exit code {self.exit_code}"
        return ArrayTaskStatus(index, JobState.FAILED, seconds, reason)


@dataclass(frozen=True, slots=True)
class Handle:
    """An array job: its id in the batch system, the number of its parts, and its request."""

    job_id: int
    parts: int
    request_id: str

    def __str__(self) -> str:
        return f"{self.job_id}.{self.parts}.{self.request_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a handle. Raises RunnerRefused."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise RunnerRefused(f"there is no job {text[:200]!r}")
        return cls(int(match[1]), int(match[2]), match[3])


#: Slurm's messages for a job that it will never accept; the last is for too long a script. Operators can fix
#: other errors, such as an unknown partition.
_REJECTIONS: Final = (
    "Requested time limit is invalid",
    "Invalid job array specification",
    "Pathname of a file",
)


#: Slurm's messages when its controller does not respond; the last is also of a lost connection.
_AWAY: Final = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Communication connection failure",
    "Zero Bytes were transmitted",
    "Slurm backup controller",
    "Transport endpoint is not connected",
    "Connection timed out",
    "Connection reset",
)


def submission_error(message: str) -> RunnerError:
    """Return the error for a job that was not accepted; other messages of Slurm are for operators."""
    if any(words in message for words in _AWAY):
        return RunnerUnavailable("the batch system does not respond: the job is sent again")
    final = next((words for words in _REJECTIONS if words in message), None)
    if final is not None:
        return RunnerRefused(f"the batch system rejected the job: {final}")
    return RunnerUnavailable("the batch system rejected the job; the platform's operators see why")


class BatchRunner(Runner):
    """Base of runners whose handles are those of :class:`Handle`."""

    def __init__(self) -> None:
        self._submitting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def submitting(self, request_id: str) -> asyncio.Lock:
        """Return the lock of a request's submissions: of two in this process the second finds the job."""
        return self._submitting.setdefault(request_id, asyncio.Lock())

    @abstractmethod
    async def statuses(self, handles: Collection[Handle]) -> Mapping[Handle, JobStatus | RunnerError]:
        """Return the status or error of each of at least one job. Raises RunnerUnavailable for all."""

    @abstractmethod
    async def stop(self, handle: Handle) -> None:
        """Cancel a job; do nothing if it has ended."""

    async def poll(self, handle: str) -> JobStatus:
        status = (await self.poll_many([handle]))[handle]
        if isinstance(status, RunnerError):
            raise status
        return status

    async def poll_many(self, handles: Sequence[str]) -> Mapping[str, JobStatus | RunnerError]:
        found: dict[str, JobStatus | RunnerError] = {}
        known: dict[str, Handle] = {}
        for text in handles:
            try:
                known[text] = Handle.parse(text)
            except RunnerRefused as error:
                found[text] = error
        if known:
            try:
                statuses = await self.statuses(frozenset(known.values()))
            except RunnerUnavailable as error:
                return found | dict.fromkeys(known, error)
            found |= {text: statuses[handle] for text, handle in known.items()}
        return found

    @abstractmethod
    async def fetch(self, handle: Handle, parts: range, directory: Path, max_bytes: int) -> list[Path]:
        """Write the output of finished parts as :meth:`collect` does. Raises RunnerRefused for others."""

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        known = Handle.parse(handle)
        return await self.fetch(known, range(known.parts), directory, max_bytes)

    async def collect_part(self, handle: str, part: int, directory: Path, max_bytes: int) -> list[Path]:
        return await self.fetch(Handle.parse(handle), range(part, part + 1), directory, max_bytes)

    async def cancel(self, handle: str) -> None:
        try:
            known = Handle.parse(handle)
        except RunnerRefused:
            return
        await self.stop(known)
