"""A request body that holds only a little at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from time import monotonic
from typing import Any, Final

from quart.wrappers.request import Body as QuartBody

from collidium.errors import BadRequest, TooLarge

#: Bytes kept for a slow handler before the connection stops reading. The server in front keeps some more:
#: ten messages of 64 KiB in Hypercorn, and what the kernel takes.
HIGH_WATER: Final = 256 * 1024

#: A declared body of this size is read to its end whatever the answer is, so that the connection lives on.
SMALL: Final = 1024 * 1024

#: Bytes a second that a body comes with at least, over the time that was waited for it: a byte now and then
#: would otherwise hold a connection, a file and a handler for as long as a client likes.
SLOWEST: Final = 1000


class Body(QuartBody):
    """The bytes of a request, taken in pieces (``async for``) or as a whole (``await``).

    Raises :class:`~collidium.errors.TooLarge` past ``limit``, and :class:`~collidium.errors.BadRequest` for
    a body that breaks off, stands still for longer than ``patience`` seconds, or comes slower than
    ``SLOWEST`` once so long was waited in all.
    """

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        #: The largest size taken; a handler may change it until it reads.
        self.limit = max_content_length
        #: Seconds without a byte after which the body is given up.
        self.patience: float | None = None
        self._declared = expected_content_length
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._received = 0
        self._waited = 0.0
        self._whole: bytes | None = None
        self._broken = False
        self._stalled = False
        self._discarding = False
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    # -- what a handler does ---------------------------------------------------------------------------

    def check_limit(self) -> None:
        """Raise TooLarge when the declared size, or what has come so far, is past the limit."""
        size = max(self._declared or 0, self._received)
        if self.limit is not None and size > self.limit:
            raise TooLarge(f"the body is larger than {self.limit:,} bytes, the most that is taken here")

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        self.check_limit()
        while not self._chunks:
            if self._broken:
                raise BadRequest("the body broke off before its end")
            if self._ended.is_set():
                raise StopAsyncIteration
            await self._wait_for_news()
            self.check_limit()
        chunk = self._chunks.popleft()
        self._buffered -= len(chunk)
        if self._buffered < HIGH_WATER:
            self._room.set()
        return chunk

    def __await__(self) -> Generator[Any, None, bytes]:
        return self._read_whole().__await__()

    async def _read_whole(self) -> bytes:
        if self._whole is None:
            self._whole = b"".join([chunk async for chunk in self])
        return self._whole

    async def _wait_for_news(self) -> None:
        self._news.clear()
        since = monotonic()
        try:
            async with asyncio.timeout(self.patience):
                await self._news.wait()
        except TimeoutError:
            self._stalled = True
            raise BadRequest(f"the body stood still for {self.patience:g} s and was given up") from None
        self._waited += monotonic() - since
        if self.patience is not None and self._waited > max(self.patience, self._received / SLOWEST):
            self._stalled = True
            raise BadRequest(f"the body came slower than {SLOWEST:,} bytes a second and was given up")

    def clear(self) -> None:
        """Forget what ``await`` returned."""
        self._whole = b""

    # -- what the connection does ------------------------------------------------------------------------

    def append(self, data: bytes) -> None:
        """Take bytes that have come, whether there is room or not."""
        self._received += len(data)
        if data and not self._discarding:
            self._chunks.append(data)
            self._buffered += len(data)
            if self._buffered >= HIGH_WATER:
                self._room.clear()
        self._news.set()

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._room.wait()

    def set_complete(self) -> None:
        """The body is whole."""
        self._ended.set()
        self._news.set()

    def break_off(self) -> None:
        """The client is gone; a body that was not whole never will be.

        Wakes no waiter: the connection cancels the handler, and an error first would let the cancellation hit
        the handler's cleaning up.
        """
        self._broken = not self._ended.is_set()
        self._ended.set()

    def discard(self) -> None:
        """The rest is not read: drop what is here and what still comes."""
        self._discarding = True
        self._chunks.clear()
        self._buffered = 0
        self._room.set()

    @property
    def is_small(self) -> bool:
        """Whether the client said that it sends little."""
        return self._declared is not None and self._declared <= SMALL

    async def ended(self, seconds: float | None) -> bool:
        """Wait until the last byte has come, for so many seconds at most; whether it has."""
        if self._ended.is_set() or self._stalled:
            return self._ended.is_set()
        before = self._received
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            self._stalled = bool(seconds) and self._received == before
            return False
        return True
