"""Sends calls over httpx, blocking or not; large files so that they go on where a connection broke.

By draft-ietf-httpbis-resumable-upload-12. The server finds an upload by the file's checksum, so another
process that sends the same file goes on, too. Ends are waited for with pauses that grow, and with patience
for a server that is away for a while.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import aclosing, closing
from dataclasses import replace
from functools import cached_property, partial
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar

import httpx

from collidium import errors
from collidium.client.answers import Answer, upload_offset
from collidium.client.calls.call import Call
from collidium.client.connection import Connection, worth_another_try
from collidium.client.uploads import Progress, Upload, UploadAbandoned
from collidium.errors import CollidiumError, Conflict, Unavailable, Unreachable, UpstreamError
from collidium.records import Evaluation, Rescoring, SimulationRequest
from collidium.runtime.waiting import in_thread

Result = TypeVar("Result")

#: Files of this size are sent so that a connection that breaks costs little.
RESUMABLE_BYTES = 100 * 1024**2
#: How often a call is sent that changes nothing, when the connection breaks under it.
TRIES = 3
Ending = TypeVar("Ending", SimulationRequest, Evaluation, Rescoring)
#: Called with the request when it is first seen, and whenever something of it has changed.
OnChange = Callable[[Ending], None]

#: Seconds between two looks: the first, how fast it grows, the longest.
FIRST_PAUSE: Final = 0.5
GROWTH: Final = 1.25
LONGEST_PAUSE: Final = 30.0

#: How long in a row the server may be away.
PATIENCE_SECONDS: Final = 300.0
#: What passes: a restart, a database or a hub that is away, a proxy without its server.
PASSING: Final = (errors.Unavailable, errors.Unreachable, errors.UpstreamError, errors.TooManyRequests)


class Exchange(Protocol):
    """Sends one request and reads its answer."""

    def __call__(self, call: Call[Any], upload: Upload | None = None, /) -> Any: ...


def send_resumably(
    exchange: Exchange, call: Call[Result], address: Callable[[Answer], str], upload: Upload
) -> Result:
    """The result of a call that sends a file, in as many requests as it takes.

    ``address`` reads where they go. Raises what the call does, and what went wrong where for five minutes
    nothing arrives.
    """
    where = exchange(_beginning(call, address, upload))
    asking = Call("GET", where, upload_offset)  # not HEAD: errors have bodies
    waiting = Waiting(None, None)
    while True:
        try:
            offset = exchange(asking)
            if offset > upload.offset:
                waiting = Waiting(None, None)
            upload.offset = offset
            headers = {
                "Content-Type": "application/partial-upload",
                "Upload-Complete": "?1",
                "Upload-Offset": str(offset),
            }
            result: Result = exchange(
                replace(call, method="PATCH", path=where, query={}, headers=headers), upload
            )
            return result
        except (Conflict, Unavailable, Unreachable, UpstreamError) as trouble:
            if not _passes(trouble):
                raise
            time.sleep(waiting.pause_after(trouble))
            if upload.abandoned:
                raise UploadAbandoned from trouble


def _beginning(call: Call[Any], address: Callable[[Answer], str], upload: Upload) -> Call[str]:
    digest = b64encode(hashlib.file_digest(upload.file, "sha256").digest()).decode()
    headers = {
        "Upload-Complete": "?0",
        "Upload-Length": str(upload.size),
        "Repr-Digest": f"sha-256=:{digest}:",
    }
    return Call(call.method, call.path, address, query=call.query, headers=headers)


def _passes(trouble: CollidiumError) -> bool:
    """Whether another request may go on: nothing was answered about the file itself."""
    if trouble.headers.get("Upload-Complete") == "?1":
        return False
    return not isinstance(trouble, Conflict) or "Upload-Offset" in trouble.headers


class BlockingTransport:
    """Sends calls and waits."""

    def __init__(self, connection: Connection, http: httpx.Client | None = None) -> None:
        self._connection = connection
        self._given = http

    def acting_as(self, connection: Connection) -> BlockingTransport:
        """The same pool for another caller."""
        return BlockingTransport(connection, self._http)

    @cached_property
    def _http(self) -> httpx.Client:
        # When it is needed, as it reads all authorities: most asynchronous clients upload nothing.
        return self._given or httpx.Client(trust_env=self._connection.trust_environment)

    def close(self) -> None:
        if "_http" in vars(self):
            self._http.close()

    def send(self, call: Call[Result], progress: Progress | None = None) -> Result:
        """The call's result; raises CollidiumError."""
        if call.upload is None:
            return self._exchange(call)
        return self.send_upload(call, Upload.open(call.upload, progress))

    def send_upload(self, call: Call[Result], upload: Upload) -> Result:
        """Like :meth:`send`, for a file that is open already.

        A server that refuses early stops reading; httpx then reads its answer in spite of the broken pipe.
        """
        with closing(upload.file):
            if call.resumable is not None and upload.size >= RESUMABLE_BYTES:
                return send_resumably(self._exchange, call, call.resumable, upload)
            return self._exchange(call, upload)

    def _exchange(self, call: Call[Result], upload: Upload | None = None) -> Result:
        request = self._connection.request(call, upload)
        tries = TRIES
        while True:
            tries -= 1
            try:
                with closing(self._http.send(request, stream=True)) as response:
                    content = self._body(response)
            except httpx.RequestError as error:
                if tries and worth_another_try(call, error):
                    continue
                raise self._connection.failure(error, call) from error
            return self._connection.read(call, response, content)

    def _body(self, response: httpx.Response) -> bytes:
        content = bytearray()
        for piece in response.iter_bytes():
            content += piece
            self._connection.refuse_endless(len(content))
        return bytes(content)


class AsyncTransport:
    """Sends calls without blocking the event loop.

    Uploads go by a thread of their own over the blocking transport: reading a file blocks, and an event
    loop that sees the connection break drops the answer of a server that refused early.
    """

    def __init__(self, connection: Connection, http: httpx.AsyncClient, uploads: BlockingTransport) -> None:
        self._connection = connection
        self._http = http
        self._uploads = uploads

    @classmethod
    def open(
        cls, connection: Connection, transport: httpx.AsyncBaseTransport | None = None
    ) -> AsyncTransport:
        """With pools of its own; ``transport`` replaces the network."""
        http = httpx.AsyncClient(
            transport=transport, trust_env=transport is None and connection.trust_environment
        )
        return cls(connection, http, BlockingTransport(connection))

    def acting_as(self, connection: Connection) -> AsyncTransport:
        """The same pools for another caller."""
        return AsyncTransport(connection, self._http, self._uploads)

    async def close(self) -> None:
        await self._http.aclose()
        self._uploads.close()

    async def send(self, call: Call[Result], progress: Progress | None = None) -> Result:
        """The call's result; raises CollidiumError."""
        if call.upload is None:
            return await self._exchange(call)
        upload = await asyncio.to_thread(Upload.open, call.upload, progress and _on_this_loop(progress))
        try:
            return await in_thread(partial(self._send_upload, call, upload), "upload")
        finally:
            # A caller that was cancelled does not want the rest to be sent.
            upload.abandoned = True

    def _send_upload(self, call: Call[Result], upload: Upload) -> Result:
        return self._uploads.acting_as(self._connection).send_upload(call, upload)

    async def _exchange(self, call: Call[Result]) -> Result:
        request = self._connection.request(call)
        tries = TRIES
        while True:
            tries -= 1
            try:
                async with aclosing(await self._http.send(request, stream=True)) as response:
                    content = await self._body(response)
            except httpx.RequestError as error:
                if tries and worth_another_try(call, error):
                    continue
                raise self._connection.failure(error, call) from error
            return self._connection.read(call, response, content)

    async def _body(self, response: httpx.Response) -> bytes:
        content = bytearray()
        async for piece in response.aiter_bytes():
            content += piece
            self._connection.refuse_endless(len(content))
        return bytes(content)


def _on_this_loop(progress: Progress) -> Progress:
    """Progress reported on the loop of the caller, not in the thread that sends."""
    loop = asyncio.get_running_loop()

    def report(sent: int, total: int) -> None:
        loop.call_soon_threadsafe(progress, sent, total)

    return report


class Waiting(Generic[Ending]):
    """What was seen so far, and when to look again; it neither looks nor sleeps itself."""

    def __init__(
        self,
        timeout: float | None,
        on_change: OnChange[Ending] | None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._clock = clock
        self._deadline = None if timeout is None else clock() + timeout
        self._on_change: OnChange[Ending] | None = on_change
        self._seen: Ending | None = None
        self._pause = FIRST_PAUSE
        self._trouble_since: float | None = None

    def has_ended(self, request: Ending) -> bool:
        """Take in what the server answered; whether there is nothing more to wait for."""
        self._trouble_since = None
        if request != self._seen:
            self._seen = request
            if self._on_change is not None:
                self._on_change(request)
        return request.has_ended

    def pause(self) -> float:
        """Seconds until the next look. Raises TimeoutError when there is no time left for one."""
        pause = self._pause
        self._pause = min(self._pause * GROWTH, LONGEST_PAUSE)
        return self._within_time(pause)

    def pause_after(self, trouble: errors.CollidiumError) -> float:
        """Seconds until the next look, after one that failed. Raises what failed when it lasts too long."""
        moment = self._clock()
        if self._trouble_since is None:
            self._trouble_since = moment
        if moment - self._trouble_since > PATIENCE_SECONDS:
            raise trouble
        retry_after = trouble.headers.get("Retry-After", "")
        wanted = float(retry_after) if retry_after.isascii() and retry_after.isdecimal() else 0.0
        return self._within_time(max(self.pause(), min(wanted, LONGEST_PAUSE)))

    def _within_time(self, pause: float) -> float:
        if self._deadline is None:
            return pause
        left = self._deadline - self._clock()
        if left <= 0:
            state = self._seen.state if self._seen else "not seen"
            raise TimeoutError(f"the request has not ended in time: it is {state}")
        return min(pause, left)
