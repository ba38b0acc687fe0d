"""Network backends of httpx clients: look-ups in threads of their own, and deadlines for blocking calls.

The event loop would look names up in its default executor, whose few threads the whole server uses. A look-up
cannot be cancelled, so an unresponsive name server would soon occupy all of them.

The timeouts of httpx and httpx2 limit each read, so a slow response could take any time. Deadlines limit the
whole call.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any, Final

import httpcore
import httpx

from collidium.errors import CollidiumError
from collidium.overrides.httpx import replace_backends
from collidium.runtime.http_client import HttpClient
from collidium.runtime.look_ups import LookUps

#: Maximum number of addresses of a host that are tried, in equal shares of the time.
MAX_ADDRESSES: Final = 3


class Network(httpcore.AsyncNetworkBackend):
    """Opens connections to hosts found by :class:`LookUps`."""

    def __init__(self, look_ups: LookUps) -> None:
        # Pyright takes it for the stub without anyio, which httpx requires.
        self._inner: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()  # pyright: ignore[reportAttributeAccessIssue]
        self._look_ups = look_ups

    def serve(self, client: httpx.AsyncClient) -> None:
        """Make the client connect through this network."""
        replace_backends(client, lambda _: self)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- its interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses. Raises ConnectError and ConnectTimeout."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        try:
            async with asyncio.timeout_at(deadline):
                addresses = _both_families(await self._look_ups.look_up(host, port))[:MAX_ADDRESSES]
        except TimeoutError:
            raise httpcore.ConnectTimeout("its host cannot be looked up now") from None
        except (OSError, UnicodeError, CollidiumError) as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: Exception = httpcore.ConnectError("its host has no address")
        for tried, address in enumerate(addresses):
            share = None if deadline is None else (deadline - loop.time()) / (len(addresses) - tried)
            try:
                return await self._inner.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


def _both_families(addresses: Sequence[str]) -> list[str]:
    """Alternate IPv4 and IPv6 addresses, as one of the two may be unreachable."""
    seen = Counter[bool]()

    def turn(address: str) -> int:
        seen[":" in address] += 1
        return seen[":" in address]

    return sorted(addresses, key=turn)


class BoundedTransport(httpx.AsyncBaseTransport):
    """Sends the requests of an ``httpx.AsyncClient`` through an :class:`HttpClient`.

    Response bodies are read into memory, up to about ``maximum_bytes``. The time for a call is the longer of
    the :class:`HttpClient`'s timeout and the read timeout of the request.
    """

    def __init__(self, http: HttpClient, maximum_bytes: int) -> None:
        self._http = http
        self._maximum_bytes = maximum_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        timeout = request.extensions.get("timeout", {})
        return await self._http.send(request, self._maximum_bytes, timeout.get("read") or 0)

    async def aclose(self) -> None:
        await self._http.close()


class Deadline(threading.local):
    """The time by which calls of the current thread must end, on the clock ``time.monotonic``."""

    at: float = math.inf

    def cut(self, timeout: float | None) -> float | None:
        """Shorten the timeout of a read or a write to the time left; None is no limit."""
        left = min(math.inf if timeout is None else timeout, self.at - monotonic())
        if left == math.inf:
            return None
        return max(left, 0.001)  # 0 would make the socket non-blocking


def keep_deadline(deadline: Deadline, client: Any) -> None:
    """Make the calls of a client of httpx or httpx2 end at the deadline."""
    replace_backends(client, lambda network: _DeadlineNetwork(network, deadline))


class _DeadlineNetwork(httpcore.NetworkBackend):
    """Opens connections whose operations end at a deadline."""

    def __init__(self, inner: httpcore.NetworkBackend, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        limit = self._deadline.cut(timeout)
        stream = self._inner.connect_tcp(host, port, limit, local_address, socket_options)
        return _DeadlineStream(stream, self._deadline)


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.cut(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.cut(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = self._deadline.cut(timeout)
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, limit), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
