"""Hypercorn: connections and HTTP/1.1 without upgrades, with bodies of parser errors, and cheaper.

- A connection that the operating system closes leaves no traceback
  (https://github.com/pgjones/hypercorn/issues/361).
- No upgrades to HTTP/2 and WebSockets, which would bypass the limits of requests; a WebSocket's could end the
  server (https://github.com/pgjones/hypercorn/issues/225, open). Hypercorn has no setting for it.
- Parser errors have a body; Hypercorn sends an empty one. No issue is known.
- No task for the idle time of each request, and one packet for head and body of a short response. No issue is
  known; a health check costs 0.99 requests of bare Quart instead of 1.32.

``serve`` takes neither a connection's class nor a protocol's, so both are replaced in Hypercorn's modules. It
can go when Hypercorn has settings for upgrades and errors, or with another ASGI server.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import h11
import hypercorn.asyncio.run
import hypercorn.protocol
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import H11SendableEvent

TESTED: Final = {"hypercorn": ("0.17.3", "0.18.0")}

#: Returns media type and body of the response to what is no request, by status.
Document = Callable[[int], tuple[str, bytes]]

_VERSIONS: Final = frozenset({b"1.0", b"1.1"})

#: Time for the first request of a new connection to arrive when the server stops.
FIRST_REQUEST_SECONDS: Final = 1.0


def install(document: Document) -> None:
    """Make Hypercorn use these classes in this process. Idempotent."""

    class Documented(Protocol):
        def document(self, status: int) -> tuple[str, bytes]:
            return document(status)

    hypercorn.asyncio.run.TCPServer = ServerConnection  # type: ignore[attr-defined,assignment]  # as below
    hypercorn.protocol.H11Protocol = Documented  # type: ignore[attr-defined]  # Hypercorn takes no protocol of ours


class ServerConnection(TCPServer):
    """A connection that the operating system may close without a traceback here."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._set_idle(True)
        self._is_new = True

    def _set_idle(self, idle: bool) -> None:
        #: When it is closed unless a request arrives; infinite while a request is handled.
        self._idle_until = self.loop.time() + self.config.keep_alive_timeout if idle else math.inf

    async def protocol_send(self, event: Event) -> None:
        if isinstance(event, Updated):
            self._set_idle(event.idle)
            self._is_new = False
            return
        try:
            await super().protocol_send(event)
        except OSError:
            await self.protocol.handle(Closed())

    async def _idle_timeout(self) -> None:
        """Close the connection after its idle time, or when the server stops while it is idle."""
        stopping = self.context.terminated
        while not stopping.is_set() and (left := self._idle_until - self.loop.time()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, self.config.keep_alive_timeout)):
                    await stopping.wait()
        if self._is_new and stopping.is_set():
            await asyncio.sleep(FIRST_REQUEST_SECONDS)
        if self._idle_until < math.inf:
            await asyncio.shield(self._initiate_server_close())

    async def _read_data(self) -> None:
        await super()._read_data()
        # The client has disconnected: do not keep our side open until the timeout.
        await self.idle_task.stop()

    async def _close(self) -> None:
        with suppress(OSError):
            await super()._close()


class Protocol(H11Protocol):
    """HTTP/1.1 on a connection. Hypercorn has no settings for what this overrides."""

    #: The head of a response, kept to be sent with the beginning of its body.
    _head = b""

    def document(self, status: int) -> tuple[str, bytes]:
        """Return media type and body of an error's response."""
        raise NotImplementedError

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        try:
            data = self._head + self.connection.send(event)
        except h11.LocalProtocolError:
            if self.connection.their_state != h11.ERROR:
                raise
            return
        is_head = isinstance(event, h11.Response)
        self._head = data if is_head else b""
        if data and not is_head:
            await self.send(RawData(data=data))

    async def _check_protocol(self, event: h11.Request) -> None:
        """Ignore ``Upgrade: h2c``, as RFC 9110, section 7.8, permits."""

    async def _create_stream(self, request: h11.Request) -> None:
        if request.http_version in _VERSIONS:
            # Neither upgrade to WebSockets, which would bypass the limits of requests.
            if any(name == b"upgrade" for name, _ in request.headers):
                headers = [(name, value) for name, value in request.headers if name != b"upgrade"]
                request = h11.Request(
                    method=request.method,
                    target=request.target,
                    headers=headers,
                    http_version=request.http_version,
                )
            await super()._create_stream(request)
        else:  # the preface of HTTP/2 reads as a request
            await self._send_error_response(505)
            await self.send(Closed())

    async def _send_error_response(self, status_code: int) -> None:
        media_type, body = self.document(status_code)
        headers = [
            (b"content-type", media_type.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *self.config.response_headers("h11"),
        ]
        for event in (
            h11.Response(status_code=status_code, headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            await self._send_h11_event(event)
