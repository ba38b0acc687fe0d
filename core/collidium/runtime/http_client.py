"""Outgoing HTTP calls of the server: bounded in number and in time, whatever their callers do.

httpcore loses a connection for good when a call is cancelled while it waits inside the pool (its issue 1093).
So no call waits there: it first waits for one of as many slots as there are connections, each of which is a
pool of one connection; a pool in which a call did not end in order is replaced.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from collidium import __version__
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

        from collidium.runtime.network import Network

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
