"""Where blocks are scored: worker processes of this machine, or a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may use."""

    memory_bytes: int
    seconds: float


class Executor(ABC):
    """Runs picklable functions outside the server's process, under limits."""

    name: str

    @abstractmethod
    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], limits: Limits
    ) -> AsyncGenerator[Result, None]:
        """Yield ``function(item)`` for each item, in the order of the items.

        An exception of the function is raised as it is. A call past its limits raises
        :class:`OverLimit`; a worker that dies raises :class:`WorkerDied`. Child processes of a call share
        its limits and end with it, whatever they keep open. Closing the generator early
        cancels what has not begun and ends what has.
        """

    @abstractmethod
    async def close(self) -> None:
        """End all workers. Idempotent."""


class OverLimit(RuntimeError):
    """A call used more time or memory than it may."""


class WorkerDied(RuntimeError):
    """A worker ended without an answer."""
