"""A network that reads no more of a receiver's answer than its head may hold, a little at a time.

HTTP libraries read informational answers (``103 Early Hints``) for as long as they come, and a whole buffer
of them between two turns of the event loop: one receiver could hold up everything else in the process.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any, Final

import httpcore

#: Bytes of an answer up to the end of its head, informational answers included; several times what servers
#: let a head be.
LONGEST_HEAD: Final = 32 * 1024
#: Bytes that are parsed without a turn of the event loop between: many receivers may answer at once.
MAX_READ_BYTES: Final = 1024


class HeadTooLong(httpcore.ReadError):
    """The answer's head does not end in time."""


class BoundedNetwork(httpcore.AsyncNetworkBackend):
    """Connections that end after :data:`LONGEST_HEAD` bytes: for who reads no body."""

    def __init__(self) -> None:
        # To pyright it may be the stand-in for environments without anyio, which httpx needs.
        self._inner: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()  # pyright: ignore[reportAttributeAccessIssue]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- its interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection; raises ConnectError and ConnectTimeout."""
        try:
            stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        except ExceptionGroup as errors:
            # So anyio hands on what is no OSError: for a port that there is not an OverflowError.
            raise httpcore.ConnectError from errors
        return _BoundedStream(stream)


class _BoundedStream(httpcore.AsyncNetworkStream):
    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._left = LONGEST_HEAD

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 -- as above
        if not self._left:
            raise HeadTooLong
        # What has arrived already is read without one.
        await asyncio.sleep(0)
        part = await self._inner.read(min(max_bytes, self._left, MAX_READ_BYTES), timeout)
        self._left -= len(part)
        return part

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- as above
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 -- as above
    ) -> httpcore.AsyncNetworkStream:
        try:
            return _BoundedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))
        except asyncio.CancelledError:
            # httpcore closes it after other failures only; no other code knows of it.
            await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
