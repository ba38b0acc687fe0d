"""Watching what goes on in the background: its record as server-sent events, until it has ended."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Protocol

from cachetools import TTLCache

from collidium.errors import TooManyRequests
from collidium.runtime.shared_calls import SharedCalls

logger = logging.getLogger(__name__)

#: Seconds between two looks at what is watched, and for how long others that watch it share one. A look at a
#: request lets the follower poll its job, and a later one finds what is new: within two seconds
#: (``2 * (LOOK_SECONDS + SHARED_SECONDS) + follower.IDLE_SECONDS``, and what the calls take). Evaluations
#: write their progress each second.
LOOK_SECONDS: Final = 0.5
SHARED_SECONDS: Final = 0.2
#: Streams of one account that a process serves at once, and how long one lasts before its client calls again.
STREAMS: Final = 8
STREAM_SECONDS: Final = 300.0
#: Records whose last look is kept.
_KEPT: Final = 1000


class Watched(Protocol):
    """A record of something that ends."""

    @property
    def has_ended(self) -> bool: ...


class Watching:
    """The streams of one process. No stream holds a connection of the database between two looks."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self._looks: SharedCalls[str, Watched] = SharedCalls(TTLCache(_KEPT, SHARED_SECONDS))
        self._streams: Counter[int] = Counter()
        #: Set when the server stops: streams end.
        self.stopping = asyncio.Event()

    def stream(
        self, key: str, account_id: int, look: Callable[[], Awaitable[Watched]]
    ) -> AsyncIterator[bytes]:
        """Server-sent events: what ``look`` returns as JSON whenever it has changed, until it has ended.

        Looks of one ``key`` are shared. Raises TooManyRequests beyond STREAMS of an account.
        """
        if self._streams[account_id] >= STREAMS:
            raise TooManyRequests(f"at most {STREAMS} streams at once; close one of them", retry_after=5)
        return self._events(key, account_id, look)

    async def _events(
        self, key: str, account_id: int, look: Callable[[], Awaitable[Watched]]
    ) -> AsyncIterator[bytes]:
        self._streams[account_id] += 1
        try:
            last, until = b"", monotonic() + STREAM_SECONDS
            # Many may have been let in at once, before any of them began.
            while self._streams[account_id] <= STREAMS and monotonic() < until:
                found = await self._looks.run(key, look)
                now = self._encode(found)
                # A comment shows a client that has gone.
                yield b":\n\n" if now == last else b"data: " + now + b"\n\n"
                last = now
                if found.has_ended or self.stopping.is_set():
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self.stopping.wait()
        except Exception as error:
            # Most likely the database is away; the client calls again.
            logger.warning("a stream of %s ended: %s", key, error)
        finally:
            self._streams[account_id] -= 1
            if not self._streams[account_id]:
                del self._streams[account_id]
