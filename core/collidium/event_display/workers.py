"""Workers that read shards of untrusted datasets for the event display."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, TypeVar

from collidium.contracts.executor import Executor, Limits, OverLimit, WorkerDied
from collidium.errors import CollidiumError, Unavailable, UnusableDataset
from collidium.event_display.outline import Outline, of_ending

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Time limit of reading something.
SECONDS: Final = 30.0
#: How long a thread waits for its turn and for what becomes of it.
_PATIENCE_SECONDS: Final = 120.0


class Workers:
    """An executor, as the event display uses it; belongs to the event loop in which it is made."""

    def __init__(self, executor: Executor, memory_bytes: int) -> None:
        self._executor = executor
        self._limits = Limits(memory_bytes, SECONDS)
        self._loop = asyncio.get_running_loop()

    async def run(self, function: Callable[[Item], Result], item: Item, what: str) -> Result:
        """``function(item)``; ``what`` is read, for messages. Raises UnusableDataset, and what it raises."""
        try:
            made = self._executor.map(function, [item], self._limits, raises=(CollidiumError,))
            async with aclosing(made):
                return await anext(made)
        except (OverLimit, WorkerDied) as error:
            raise UnusableDataset(
                f"{what} cannot be shown: decoding it takes too much, or its file is damaged"
            ) from error
        except CollidiumError:
            raise
        except Exception as error:  # a reader may raise anything over untrusted input
            logger.exception("%s cannot be decoded", what)
            raise UnusableDataset(f"{what} cannot be decoded") from error

    def outline(self, name: str, size: int, tail: bytes) -> Outline:
        """Read the outline of a shard from its end. Blocks. Raises UnusableDataset and Unavailable."""
        reading = asyncio.run_coroutine_threadsafe(self.run(of_ending, (name, size, tail), name), self._loop)
        try:
            return reading.result(_PATIENCE_SECONDS)
        except TimeoutError:
            reading.cancel()
            raise Unavailable("all readers of files are busy now; try again in a moment") from None
