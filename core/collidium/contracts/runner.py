"""What simulates events: a mock, a container, a batch system."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Final

#: How many jobs the default :meth:`Runner.poll_many` asks about at once.
POLLS_AT_ONCE: Final = 16


class JobState(StrEnum):
    """What a runner may say of a job. ``unknown`` means: keep following, and tell."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def has_ended(self) -> bool:
        """Whether that is the job's last state."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Job:
    """Events to simulate. ``request_id`` names the job everywhere, so that submitting is idempotent."""

    request_id: str
    channel: str
    events: int
    pileup: int
    seed: int
    #: How long one node is expected to compute all of it, in seconds: what a time limit is made from.
    node_seconds: float


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What became of a job so far."""

    state: JobState
    #: Node-hours used so far; None where the runner cannot tell.
    node_hours: Decimal | None = None
    #: Why it is as it is, for the person who ordered it: one line, without secrets.
    reason: str | None = None


class RunnerError(RuntimeError):
    """The runner did not do what was asked.

    The message is for whoever ordered the job, without paths, settings and hosts. What operators need is its
    cause (``raise RunnerUnavailable("…") from error``), which is logged.
    """


class RunnerRefused(RunnerError):
    """The runner will not do this, now or later; the message says why, for whoever asked."""


class RunnerUnavailable(RunnerError):
    """The runner cannot be reached or answered nonsense; asking later may work."""


class Runner(ABC):
    """Drives jobs; one long-lived instance per process.

    A handle is kept in the database and outlives the process: any other instance with the same settings, in
    another process or after a restart, must follow, cancel and collect the job by it. Every method but
    ``close`` may raise :class:`RunnerUnavailable` and :class:`RunnerRefused`, and no other error.

    The platform may ask the same thing again at any time, because whoever asked first may have been killed
    before it could write the answer down.
    """

    #: What settings choose it by.
    name: str
    #: Whether its jobs only play through their states and bring no output.
    is_mock: ClassVar[bool] = False
    #: Seconds between two polls of a job; None: as often as the setting ``PLATFORM_POLL_SECONDS`` says.
    poll_seconds: float | None = None

    def check(self) -> None:  # noqa: B027 -- most need nothing
        """Raise :class:`~collidium.errors.ConfigurationError` where this machine lacks what every job needs.

        Asked at the start of a process that follows requests, of the runner that the settings choose.
        """

    @abstractmethod
    async def submit(self, job: Job) -> str:
        """Start the job and return its handle (at most 200 characters); the same request_id again returns the
        same handle and starts nothing.

        Raises :class:`RunnerRefused` for a job that this runner will never run.
        """

    @abstractmethod
    async def find(self, request_id: str) -> str | None:
        """The handle of the job that was submitted for a request, None when there is none.

        How a job is stopped whose handle was never written down.
        """

    @abstractmethod
    async def poll(self, handle: str) -> JobStatus:
        """The job's state now.

        Raises :class:`RunnerUnavailable` when that cannot be known now, and :class:`RunnerRefused` for a
        handle that the runner does not know.
        """

    async def poll_many(self, handles: Sequence[str]) -> Mapping[str, JobStatus | RunnerError]:
        """The states of many jobs, each with what :meth:`poll` returns or raises for it.

        A runner that can ask about many jobs in one call overrides this.
        """
        turns = asyncio.Semaphore(POLLS_AT_ONCE)

        async def ask(handle: str) -> JobStatus | RunnerError:
            async with turns:
                try:
                    return await self.poll(handle)
                except RunnerError as error:
                    return error

        return dict(zip(handles, await asyncio.gather(*map(ask, handles)), strict=True))

    @abstractmethod
    async def cancel(self, handle: str) -> None:
        """Stop the job's compute; nothing happens when it has ended or the handle is not known."""

    @abstractmethod
    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        """Write the output of a completed job below ``directory`` and return its files.

        The files are parquet tables in the hosted layout: ``<table>.parquet`` or shards of it,
        ``<table>-00000-of-00004.parquet``, one row per event with a column ``event_id``, and list columns.
        Files that an earlier call left there are taken over or written again. All files together have at
        most ``max_bytes``; what a job wrote is untrusted, so the runner looks at sizes before it writes
        anything, and writes no more where a file turns out larger. Raises :class:`RunnerRefused` for a
        larger output, for a handle that the runner does not know and for a job that has not completed. A
        mock has nothing to collect: it returns no files.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give back connections. Idempotent."""
