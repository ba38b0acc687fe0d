"""Services on loopback that answer as a test wants them to, on the event loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Self

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[str]:
    """A server that treats each connection by ``serve``; its address."""
    async with await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1000) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def response(status: int, body: str, *headers: str) -> bytes:
    """A whole HTTP response."""
    content = body.encode()
    head = "\r\n".join([f"HTTP/1.1 {status} Status", f"Content-Length: {len(content)}", *headers])
    return f"{head}\r\n\r\n".encode() + content


class Service:
    """Answers each request with what ``respond`` makes of its head, once ``gate`` is open."""

    def __init__(self) -> None:
        self.url = ""
        self.gate = asyncio.Event()
        self.gate.set()
        self.connections = 0

    async def respond(self, head: bytes) -> bytes:
        """A whole HTTP response."""
        raise NotImplementedError

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                writer.write(await self.respond(head))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """The service at its ``url``; at the end the gate is open."""
        async with listening(self.serve) as self.url:
            yield self
            self.gate.set()
