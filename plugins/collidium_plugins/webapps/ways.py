"""How what browsers send is passed on to the backend: within the process, or over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, closing
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpx
from quart import Quart, has_request_context, request

from collidium.runtime.http_client import HttpClient, past_proxies
from collidium.runtime.network import BoundedTransport
from collidium.runtime.threads import in_thread

#: Seconds that any answer may take, and that of a scoring, which is sent when it is done.
PATIENCE_SECONDS: Final = 30.0
PATIENCE_OF_UPLOADS: Final = httpx.Timeout(30.0, read=3600.0)
#: Calls of a backend elsewhere at one time, and bytes of an answer: far more than any has.
CONNECTIONS: Final = 100
LONGEST_ANSWER: Final = 64 * 1024**2

_FORWARDED: Final = b"x-forwarded-for"


@dataclass(frozen=True, slots=True)
class Forwarding:
    """The backend, for what is passed on as it comes: small calls, and uploads."""

    calls: httpx.AsyncClient
    uploads: httpx.AsyncClient


@asynccontextmanager
async def forwarding(backend: str, app: Quart | None) -> AsyncIterator[Forwarding]:
    """To the application ``app``, else over HTTP to the address ``backend``."""
    here = in_process(app) if app else None
    async with (
        httpx.AsyncClient(
            base_url=backend, timeout=PATIENCE_SECONDS, transport=here or elsewhere(), cookies=_no_cookies()
        ) as calls,
        httpx.AsyncClient(
            base_url=backend, timeout=PATIENCE_OF_UPLOADS, transport=here or Threaded(), cookies=_no_cookies()
        ) as uploads,
    ):
        yield Forwarding(calls, uploads)


def _no_cookies() -> CookieJar:
    """What one caller is given must not go out with the next one's call."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


def in_process(app: Quart) -> httpx.ASGITransport:
    """Calls of an application in its own process."""
    # Quart's proxy stands for it only while it handles something.
    asgi = getattr(app, "_get_current_object", lambda: app)()
    return httpx.ASGITransport(partial(_answered, asgi))


def elsewhere() -> BoundedTransport:
    """Calls of an application that is reached over HTTP."""
    return BoundedTransport(HttpClient(PATIENCE_SECONDS, CONNECTIONS), LONGEST_ANSWER)


async def _answered(app: Any, scope: Any, receive: Any, send: Any) -> None:
    """The application's answer, without waiting for the rest of an upload that it refuses.

    A server goes on reading for a while, so that its refusal is not lost with the connection. Here that is
    left to whoever has the connection.
    """
    refused, told, ended = False, False, asyncio.Event()
    failure: Exception | None = None

    async def receive_what_is_wanted() -> Any:
        nonlocal told, failure
        if not refused:
            try:
                return await receive()
            except Exception as error:  # whoever sends has failed; to the application they are gone
                failure = error
                return {"type": "http.disconnect"}
        if not told:
            told = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send_and_see(message: Any) -> None:
        nonlocal refused
        if message["type"] == "http.response.start":
            refused = message["status"] >= 400
        elif not message.get("more_body", False):
            ended.set()
        await send(message)

    if has_request_context():
        # The backend counts unknown tokens by the address that they come from: that of the browser.
        passed = [
            (_FORWARDED, value.encode("latin-1")) for value in request.headers.getlist("X-Forwarded-For")
        ]
        scope = {**scope, "client": (request.remote_addr or "", 0), "headers": [*scope["headers"], *passed]}
    # What is known of the request that calls, above all who it is, must not be taken for that of the call.
    call = app(scope, receive_what_is_wanted, send_and_see)
    await asyncio.get_running_loop().create_task(call, context=Context())
    if failure is not None:
        raise failure


class Threaded(httpx.AsyncBaseTransport):
    """Sends each upload from a thread of its own.

    An event loop that sees the connection break drops the answer of a server that refused early; a thread
    still reads it.
    """

    def __init__(self) -> None:
        self._client = httpx.Client(timeout=PATIENCE_OF_UPLOADS, mounts=past_proxies(), cookies=_no_cookies())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        upload = _Upload(request)
        try:
            return await in_thread(partial(self._send, upload.request), "forwarding")
        finally:
            upload.abandon()

    def _send(self, request: httpx.Request) -> httpx.Response:
        with closing(self._client.send(request, stream=True)) as response:
            content = b"".join(response.iter_raw())
        return httpx.Response(response.status_code, headers=response.headers, content=content)

    async def aclose(self) -> None:
        self._client.close()


class _Upload(httpx.SyncByteStream):
    """A body that comes on the event loop and goes from a thread, piece by piece."""

    def __init__(self, request: httpx.Request) -> None:
        assert isinstance(request.stream, httpx.AsyncByteStream), "made by an AsyncClient"  # noqa: S101 -- for types
        self._pieces = aiter(request.stream)
        self._loop = asyncio.get_running_loop()
        self._awaited: Future[bytes | None] | None = None
        self._abandoned = False
        self.request = httpx.Request(
            request.method, request.url, headers=request.headers, stream=self, extensions=request.extensions
        )

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self._wait_for_piece()) is not None:
            yield piece

    def abandon(self) -> None:
        """Nobody waits for the answer any more: the thread sends no more pieces."""
        self._abandoned = True
        if self._awaited is not None:
            self._awaited.cancel()

    def _wait_for_piece(self) -> bytes | None:
        self._awaited = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        # Whichever of the two threads comes second sees what the other one did.
        if self._abandoned:
            self._awaited.cancel()
        return self._awaited.result()

    async def _next(self) -> bytes | None:
        return await anext(self._pieces, None)
