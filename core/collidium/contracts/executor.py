"""The contract of an executor, which scores blocks in worker processes or on a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: memory in bytes, and time in seconds."""

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

        Child processes of a call share its limits and end with it, whatever they keep open. Closing the
        generator early cancels waiting calls and ends running ones.

        Parameters
        ----------
        function : callable
            Picklable.
        items : sequence
            Picklable.
        limits : Limits
            Of each call.

        Raises
        ------
        OverLimit
            If a call exceeds its limits.
        WorkerDied
            If a worker ends without a result.
        Exception
            Any exception of the function, unchanged.
        """

    @abstractmethod
    async def close(self) -> None:
        """End all workers. Idempotent."""


class OverLimit(RuntimeError):
    """A call exceeded its limit of time or memory."""


class WorkerDied(RuntimeError):
    """A worker ended without a result."""
