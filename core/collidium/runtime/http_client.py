"""Outgoing HTTP calls of the server, bounded in number and in time.

httpcore leaks a connection when a call is cancelled while it waits inside the pool (its issue 1093). So no
call waits there: each waits for one of a number of slots, and each slot is a pool of one connection. A pool
whose call failed is replaced.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from collidium import __version__
from collidium.runtime.look_ups import LookUps

if TYPE_CHECKING:
    import ssl

    import httpx

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
#: Share of a call's time for each of TCP and TLS. A handshake must end by its own timeout, which closes the
#: socket; if cancelled, it would leave the socket to the garbage collector.
_CONNECT_SHARE: Final = 0.45
#: Headers that no longer apply once the body is read.
_OF_THE_TRANSFER: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class NoResponse(Exception):
    """The service did not respond; the message gives the reason, and nothing of the request."""


def past_proxies() -> dict[str, None]:
    """Return mounts of httpx that bypass the environment's proxies for this machine's own addresses."""
    return {f"all://{host}": None for host in _LOOPBACK}


class HttpClient:
    """An HTTP client with a limited number of concurrent calls. It does not follow redirects.

    Parameters
    ----------
    timeout_seconds
        Time for a whole call: waiting for a slot, connecting, and receiving the response with its body.
    connections
        Maximum number of concurrent calls; further calls wait.
    """

    def __init__(self, timeout_seconds: float, connections: int) -> None:
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(connections)
        #: Pools of one connection each, the last used one at the end.
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
            Reading stops after this many bytes of the body; the body may be slightly longer.
        **content
            ``params``, ``content`` and ``json``, as for ``httpx.Request``.

        Raises
        ------
        NoResponse
            If there is no response in time.
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
            # Only the type of the error: its message may contain secrets of the request.
            raise NoResponse(f"cannot be reached ({type(error).__name__})") from None

    async def send(
        self, request: httpx.Request, maximum_bytes: int, patience_seconds: float = 0
    ) -> httpx.Response:
        """Send a request as :meth:`call` does, but raise the errors of httpx.

        ``patience_seconds`` is the time for the whole call, if longer than that of the client.
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
        # If the caller is cancelled, the call goes on until its deadline.
        task = asyncio.create_task(self._exchange(request, maximum_bytes, deadline))
        self._calls.add(task)
        task.add_done_callback(self._finish)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel all calls and close all connections. Idempotent."""
        self._closed = True
        for task in list(self._calls):
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        while self._idle:
            await self._idle.pop().aclose()

    def _finish(self, task: asyncio.Task[httpx.Response]) -> None:
        self._calls.discard(task)
        self._slots.release()
        if not task.cancelled():
            task.exception()  # retrieved, as the caller may have been cancelled

    async def _exchange(self, request: httpx.Request, maximum_bytes: int, deadline: float) -> httpx.Response:
        import httpx

        pool = self._idle.pop() if self._idle else self._pool_of_one()
        timeout = httpx.Timeout(None, connect=self._timeout_seconds * _CONNECT_SHARE)
        request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
        # A compressed body could expand a thousandfold. One that comes nevertheless is not decompressed.
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with asyncio.timeout_at(deadline):
                response = await pool.send(request, stream=True)
                try:
                    content = await _body(response, maximum_bytes)
                finally:
                    await response.aclose()
        except BaseException as error:  # raised again
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
    """Import httpx and load the certificates once, in a thread, as that would block the event loop."""
    if not _tls.cache_info().currsize:
        await asyncio.to_thread(_tls)


@functools.cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()
