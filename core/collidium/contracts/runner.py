"""What simulates events: a mock, a container, a batch system.

Part of the contract and used once the platform takes simulation requests; until then nothing calls a runner.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path


class JobState(StrEnum):
    """What a runner may say of a job. ``unknown`` means: keep following, and tell."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Job:
    """Events to simulate. ``request_id`` names the job everywhere, so that submitting is idempotent."""

    request_id: str
    channel: str
    events: int
    pileup: int
    seed: int


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What became of a job so far."""

    state: JobState
    node_hours: Decimal = Decimal(0)
    reason: str | None = None


class Runner(ABC):
    """Drives jobs; one long-lived instance per process.

    A handle is kept in the database and outlives the process: any other instance with the same settings, in
    another process or after a restart, must follow, cancel and collect the job by it. Every method but
    ``close`` may raise :class:`RunnerUnavailable` and :class:`RunnerRefused`, and no other error.
    """

    name: str

    @abstractmethod
    async def submit(self, job: Job) -> str:
        """Start the job and return its handle; the same request_id again returns the same handle.

        Raises :class:`RunnerRefused` for a job that this runner will never run.
        """

    @abstractmethod
    async def poll(self, handle: str) -> JobStatus:
        """The job's state now.

        Raises :class:`RunnerUnavailable` when that cannot be known now, and :class:`RunnerRefused` for a
        handle that the runner does not know.
        """

    @abstractmethod
    async def cancel(self, handle: str) -> None:
        """Stop the job's compute; nothing happens when it has ended or the handle is not known."""

    @abstractmethod
    async def collect(self, handle: str, directory: Path) -> list[Path]:
        """Write the output of a completed job below ``directory`` and return its files.

        The files are parquet tables in the hosted layout: ``<table>.parquet`` or shards of it, one row per
        event with a column ``event_id``, and list columns. Raises :class:`RunnerRefused` for a handle that
        the runner does not know and for a job that has not completed.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give back connections. Idempotent."""


class RunnerRefused(RuntimeError):
    """The runner will not do this, now or later; the message says why, for whoever asked."""


class RunnerUnavailable(RuntimeError):
    """The runner cannot be reached or answered nonsense; asking later may work."""
