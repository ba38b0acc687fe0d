"""Streams of server-sent events that show a record whenever it changes, until it has ended."""

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

#: Seconds between two reads of a record, and for which streams share one read. Reading a request makes the
#: follower poll its job, and a later read finds the result: a change shows within two seconds
#: (``2 * (LOOK_SECONDS + SHARED_SECONDS) + follower.IDLE_SECONDS``, and the time of the calls). Evaluations
#: write their progress each second.
LOOK_SECONDS: Final = 0.5
SHARED_SECONDS: Final = 0.2
#: Maximum number of concurrent streams of an account in a process, and the duration of a stream, after which
#: its client calls again.
STREAMS: Final = 8
STREAM_SECONDS: Final = 300.0
#: Maximum number of cached reads.
_KEPT: Final = 1000


class Watched(Protocol):
    """A record that can be watched."""

    @property
    def has_ended(self) -> bool: ...


class Watching:
    """The streams of one process. No stream holds a database connection between two reads."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self._looks: SharedCalls[str, Watched] = SharedCalls(TTLCache(_KEPT, SHARED_SECONDS))
        self._streams: Counter[int] = Counter()
        #: Set when the server stops: streams end.
        self.stopping = asyncio.Event()

    def stream(
        self, key: str, account_id: int, look: Callable[[], Awaitable[Watched]]
    ) -> AsyncIterator[bytes]:
        """Return server-sent events: the record of ``look`` as JSON whenever it changes, until it has ended.

        Streams with the same ``key`` share their reads. Raises TooManyRequests if the account has
        ``STREAMS`` already.
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
            # Several streams may have been admitted before any of them was counted.
            while self._streams[account_id] <= STREAMS and monotonic() < until:
                found = await self._looks.run(key, look)
                now = self._encode(found)
                # Sending a comment fails if the client has disconnected.
                yield b":\n\n" if now == last else b"data: " + now + b"\n\n"
                last = now
                if found.has_ended or self.stopping.is_set():
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self.stopping.wait()
        except Exception as error:
            # Most likely the database is unreachable. The client calls again.
            logger.warning("a stream of %s ended: %s", key, error)
        finally:
            self._streams[account_id] -= 1
            if not self._streams[account_id]:
                del self._streams[account_id]
