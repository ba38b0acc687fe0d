"""Outgoing HTTP calls of the server: bounded in number and in time, whatever their callers do.

httpcore loses a connection for good when a call is cancelled while it waits inside the pool (its issue 1093).
So no call waits there: it first waits for one of as many slots as there are connections, each of which is a
pool of one connection; a pool in which a call did not end in order is replaced.

Names are looked up in threads of their own. The event loop would look them up in its default executor, whose
few threads the whole server uses; a look-up cannot be called off, so a name server that does not answer would
soon hold all of them.

Deadlines are for blocking calls of clients: httpx limits each read, so an answer that drips would never end.
"""

from __future__ import annotations

import asyncio
import functools
import math
import ssl
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import httpcore
import httpx

from collidium import __version__
from collidium.errors import CollidiumError
from collidium.runtime.addresses import LookUps

if TYPE_CHECKING:
    import ssl

    import httpx

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
#: Part of a call's time for each of TCP and TLS: a handshake has to end by its own timeout, which closes the
#: socket; cancelled, it would leave the socket to the garbage collector.
_CONNECT_SHARE: Final = 0.45
#: Headers that are wrong for a body that was read.
_OF_THE_TRANSFER: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})

#: Addresses of a host that are tried, each for its part of the time.
MAX_ADDRESSES: Final = 3


class NoResponse(Exception):
    """The service did not respond; the message gives the reason, and nothing of the request."""


def past_proxies() -> dict[str, None]:
    """Mounts of httpx: a proxy of the environment is for the world outside, not for this machine."""
    return {f"all://{host}": None for host in _LOOPBACK}


class HttpClient:
    """Calls services, a limited number at once. Redirects are not followed.

    Parameters
    ----------
    timeout_seconds
        Time for the whole of a call: the wait for a slot, the connection, the response with its body.
    connections
        Maximum number of calls at one time; further calls wait.
    """

    def __init__(self, timeout_seconds: float, connections: int) -> None:
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(connections)
        #: A pool of one connection each, the one that was used last at the end.
        self._idle: list[httpx.AsyncClient] = []
        self._calls: set[asyncio.Task[httpx.Response]] = set()
        self._look_ups = LookUps()
        self._closed = False

    async def call(
        self,
        method: str,
        url: str,
        maximum_bytes: int,
        headers: Mapping[str, str] | None = None,
        **content: Any,
    ) -> httpx.Response:
        """Send a request and return its response.

        Parameters
        ----------
        maximum_bytes
            Length of the body from which on no more of it is read; what was read may be a little longer.
        **content
            ``params``, ``content`` and ``json``, as for ``httpx.Request``.

        Raises
        ------
        NoResponse
            When there is none in time.
        """
        await _prepare()
        import httpx

        headers = {"User-Agent": f"collidium/{__version__}", **(headers or {})}
        try:
            request = httpx.Request(method, url, headers=headers, **content)
            return await self.send(request, maximum_bytes)
        except httpx.TimeoutException:
            raise NoResponse(f"did not answer within {self._timeout_seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            # Only the kind of error: its request carries secrets.
            raise NoResponse(f"cannot be reached ({type(error).__name__})") from None

    async def send(
        self, request: httpx.Request, maximum_bytes: int, patience_seconds: float = 0
    ) -> httpx.Response:
        """As :meth:`call`, for a request that is made already; raises what httpx does.

        ``patience_seconds`` is the time of a call that takes longer than others.
        """
        await _prepare()
        import httpx

        seconds = max(patience_seconds, self._timeout_seconds)
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise httpx.PoolTimeout("too many calls", request=request) from None
        if self._closed:
            self._slots.release()
            raise httpx.CloseError("the client was closed", request=request)
        # A caller that is cancelled leaves the call to its own deadline.
        task = asyncio.create_task(self._exchange(request, maximum_bytes, deadline))
        self._calls.add(task)
        task.add_done_callback(self._finish)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """End what goes on and what waits, and close all connections. Idempotent."""
        self._closed = True
        for task in list(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        while self._idle:
            await self._idle.pop().aclose()

    def _finish(self, task: asyncio.Task[httpx.Response]) -> None:
        self._calls.discard(task)
        self._slots.release()
        # Asking for the error marks it as seen, also where the caller has gone.
        if not task.cancelled():
            task.exception()

    async def _exchange(self, request: httpx.Request, maximum_bytes: int, deadline: float) -> httpx.Response:
        import httpx

        pool = self._idle.pop() if self._idle else self._pool_of_one()
        timeout = httpx.Timeout(None, connect=self._timeout_seconds * _CONNECT_SHARE)
        request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
        # A thousandth of a bomb would hold all of the maximum. What is compressed all the same is not read.
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with asyncio.timeout_at(deadline):
                response = await pool.send(request, stream=True)
                try:
                    content = await _body(response, maximum_bytes)
                finally:
                    await response.aclose()
        except BaseException as error:
            await pool.aclose()
            if isinstance(error, TimeoutError):
                raise httpx.ReadTimeout("no whole response", request=request) from None
            raise
        self._idle.append(pool)
        headers = [item for item in response.headers.multi_items() if item[0] not in _OF_THE_TRANSFER]
        return httpx.Response(response.status_code, headers=headers, content=content, request=request)

    def _pool_of_one(self) -> httpx.AsyncClient:
        import httpx

        pool = httpx.AsyncClient(
            verify=_tls(),
            limits=httpx.Limits(max_connections=1),
            follow_redirects=False,
            mounts=past_proxies(),
        )
        Network(self._look_ups).serve(pool)
        return pool


async def _body(response: httpx.Response, maximum_bytes: int) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > maximum_bytes:
            break
    return bytes(content)


async def _prepare() -> None:
    """Import httpx and read all certificates once, in a thread: that would hold up every other request."""
    if not _tls.cache_info().currsize:
        await asyncio.to_thread(_tls)


@functools.cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


class Network(httpcore.AsyncNetworkBackend):
    """Opens connections; calls that wait for one name share its look-up."""

    def __init__(self, look_ups: LookUps) -> None:
        # To pyright it may be the stand-in for environments without anyio, which httpx needs.
        self._inner: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()  # pyright: ignore[reportAttributeAccessIssue]
        self._look_ups = look_ups

    def serve(self, client: httpx.AsyncClient) -> None:
        """Make the client connect through this network, which httpx has no parameter for."""
        for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001
            if isinstance(transport, httpx.AsyncHTTPTransport):
                transport._pool._network_backend = self  # noqa: SLF001

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 -- its interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses; raises ConnectError and ConnectTimeout."""
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
    """The addresses of IPv4 and of IPv6 by turns, as one of the two may lead nowhere."""
    seen = Counter[bool]()

    def turn(address: str) -> int:
        seen[":" in address] += 1
        return seen[":" in address]

    return sorted(addresses, key=turn)


class BoundedTransport(httpx.AsyncBaseTransport):
    """Sends the requests of an ``httpx.AsyncClient`` through an :class:`HttpClient`.

    Bodies of responses are in memory, up to ``maximum_bytes`` and a little more. The time of a call is that
    of the client below, or what the one above allows for reading where that is longer.
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
    """When calls of the current thread end, by ``time.monotonic``."""

    at: float = math.inf

    def cut(self, timeout: float | None) -> float | None:
        """The time limit of a read or a write that may take ``timeout`` seconds; None: no limit."""
        left = min(math.inf if timeout is None else timeout, self.at - monotonic())
        if left == math.inf:
            return None
        return max(left, 0.001)  # 0 would mean not to wait at all, which is another error


def keep(deadline: Deadline, client: Any) -> None:
    """Make the calls of a client end at the deadline, which it has no parameter for."""
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001
        if (pool := getattr(transport, "_pool", None)) is not None:
            pool._network_backend = _Network(pool._network_backend, deadline)  # noqa: SLF001


class _Network(httpcore.NetworkBackend):
    """Opens connections that keep a deadline."""

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
        return _Stream(stream, self._deadline)


class _Stream(httpcore.NetworkStream):
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
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, limit), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
