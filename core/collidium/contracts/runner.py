"""What simulates events: a mock, a container, a batch system."""

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
    """Drives jobs; one long-lived instance per process."""

    name: str

    @abstractmethod
    async def submit(self, job: Job) -> str:
        """Start the job and return its handle; the same request_id again returns the same handle."""

    @abstractmethod
    async def poll(self, handle: str) -> JobStatus:
        """The job's state now. Raises :class:`RunnerUnavailable` when that cannot be known."""

    @abstractmethod
    async def cancel(self, handle: str) -> None:
        """Stop the job's compute; nothing happens when it has ended."""

    @abstractmethod
    async def collect(self, handle: str, directory: Path) -> list[Path]:
        """Write the output of a completed job below ``directory`` and return its files."""

    @abstractmethod
    async def close(self) -> None:
        """Give back connections. Idempotent."""


class RunnerUnavailable(RuntimeError):
    """The runner cannot be reached or answered nonsense; asking later may work."""
