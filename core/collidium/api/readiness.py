"""Whether the parts that a server needs are there: asked at most every few seconds, in bounded time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

from tortoise.exceptions import BaseORMException

from collidium import operations
from collidium.database.errors import is_away
from collidium.platform import Platform
from collidium.runtime.logs import message_of

#: How long an answer of a part is good for, and how long it may take.
FRESH_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 2.0
#: Never stored: looking for it shows whether the storage answers.
KEY: Final = "readiness"

logger = logging.getLogger(__name__)


class Probe:
    """Asks one part. A question that hangs is not asked again before it ends: it may hold a thread."""

    def __init__(self, part: str, ask: Callable[[], Awaitable[object]]) -> None:
        self._part = part
        self._ask = ask
        self._asking: asyncio.Task[object] | None = None
        self._asked_at = -FRESH_SECONDS
        self._answers = True

    async def answers(self) -> bool:
        """Return whether the part answered lately."""
        if self._asking is None:
            if monotonic() < self._asked_at + FRESH_SECONDS:
                return self._answers
            self._asking = asyncio.create_task(self._asked())
        asking = self._asking
        done, _ = await asyncio.wait([asking], timeout=PATIENCE_SECONDS)
        if not done:
            logger.warning("%s does not answer", self._part)
            return False
        return self._answers

    async def _asked(self) -> None:
        try:
            await self._ask()
            self._answers = True
        except Exception as error:  # of any kind: it is a plugin's
            self._answers = False
            logger.warning("%s is away: %s", self._part, message_of(error))
        finally:
            self._asked_at, self._asking = monotonic(), None


class Parts:
    """The storage and the executor of a platform, and whether the server is about to stop."""

    def __init__(self, platform: Platform) -> None:
        self.is_stopping = False
        self.storage = Probe("the storage", lambda: platform.storage.exists(KEY))
        self.scoring = Probe("the executor", lambda: platform.executor.check())


async def frozen() -> bool | None:
    """Return whether submissions are frozen; None while the database is away."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await operations.is_frozen()
    except TimeoutError:
        return None
    except Exception as error:
        if not is_away(error) and not isinstance(error, BaseORMException):  # a table that is missing
            raise
        return None
