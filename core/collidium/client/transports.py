"""Send calls with httpx, blocking or not, and wait for requests to end.

Large files are uploaded resumably (draft-ietf-httpbis-resumable-upload-12). The server identifies an upload
by the file's checksum, so that another process can resume it. Downloads are resumed by ranges (RFC 9110).
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
from pathlib import Path
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar, cast

import httpx

from collidium import errors
from collidium.client.calls.call import Call
from collidium.client.connection import Connection, may_retry
from collidium.client.downloads import Download, DownloadAbandoned, DownloadPart
from collidium.client.responses import Response, upload_offset
from collidium.client.uploads import FileUpload, UploadAbandoned
from collidium.errors import CollidiumError, Conflict, Unavailable, Unreachable, UpstreamError
from collidium.records import Evaluation, Rescoring, SimulationRequest
from collidium.runtime.progress import Progress
from collidium.runtime.waiting import in_thread

Result = TypeVar("Result")

#: Files of at least this size are uploaded resumably.
RESUMABLE_BYTES = 100 * 1024**2
#: How often a repeatable call is sent if the connection breaks.
TRIES = 3
Watched = TypeVar("Watched", SimulationRequest, Evaluation, Rescoring)
#: Called with the request at first and after each change.
OnChange = Callable[[Watched], None]

#: Seconds between two polls: at first, growth factor, maximum.
FIRST_PAUSE: Final = 0.5
GROWTH: Final = 1.25
LONGEST_PAUSE: Final = 30.0

#: How long an outage of the server is tolerated.
PATIENCE_SECONDS: Final = 300.0
#: Failures that may be transient: a restart, an unavailable database or hub, a proxy without its server.
TRANSIENT: Final = (errors.Unavailable, errors.Unreachable, errors.UpstreamError, errors.TooManyRequests)


class Exchange(Protocol):
    """Sends one request and decodes its response."""

    def __call__(self, call: Call[Any], upload: FileUpload | None = None, /) -> Any: ...


def send_resumably(
    exchange: Exchange, call: Call[Result], address: Callable[[Response], str], upload: FileUpload
) -> Result:
    """Upload a file in as many requests as necessary, and return the result of the call.

    ``address`` reads the address of the upload from the first response. Raises what the call raises, and the
    last failure if nothing arrives for five minutes.
    """
    where = exchange(_creation(call, address, upload))
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
            if not _is_transient(trouble):
                raise
            time.sleep(waiting.pause_after(trouble))
            if upload.abandoned:
                raise UploadAbandoned from trouble


def _creation(call: Call[Any], address: Callable[[Response], str], upload: FileUpload) -> Call[str]:
    digest = b64encode(hashlib.file_digest(upload.file, "sha256").digest()).decode()
    headers = {
        "Upload-Complete": "?0",
        "Upload-Length": str(upload.size),
        "Repr-Digest": f"sha-256=:{digest}:",
    }
    return Call(call.method, call.path, address, query=call.query, headers=headers)


def _is_transient(trouble: CollidiumError) -> bool:
    """Whether to try again: the server has not answered about the file itself."""
    if trouble.headers.get("Upload-Complete") == "?1":
        return False
    return not isinstance(trouble, Conflict) or "Upload-Offset" in trouble.headers


class BlockingTransport:
    """Sends calls and blocks."""

    def __init__(self, connection: Connection, http: httpx.Client | None = None) -> None:
        self._connection = connection
        self._given = http

    def acting_as(self, connection: Connection) -> BlockingTransport:
        """Return a transport for another account that shares the connection pool."""
        return BlockingTransport(connection, self._http)

    @cached_property
    def _http(self) -> httpx.Client:
        # Created on first use, because it loads all certificates: most asynchronous clients upload nothing.
        return self._given or httpx.Client(trust_env=self._connection.trust_environment)

    def close(self) -> None:
        if "_http" in vars(self):
            self._http.close()

    def send(self, call: Call[Result], progress: Progress | None = None) -> Result:
        """Return the result of a call; raises CollidiumError."""
        if call.download is not None:
            return cast(Result, self.receive(call, call.download))
        if call.upload is None:
            return self._exchange(call)
        return self.send_upload(call, FileUpload.open(call.upload, progress))

    def receive(self, call: Call[Any], download: Download) -> Path:
        """Receive the file of a call, in as many requests as necessary.

        Raises what the call raises, and the last failure if nothing arrives for five minutes.
        """
        if not download.exists:
            with download.part() as part:
                waiting = Waiting(None, None)
                while not (part.is_complete and part.keep()):
                    before = part.received
                    try:
                        self._append(call, part)
                        part.require_complete()
                    except TRANSIENT as trouble:
                        if part.received > before:
                            waiting = Waiting(None, None)
                        time.sleep(waiting.pause_after(trouble))
                        if download.abandoned:
                            raise DownloadAbandoned from trouble
        return download.path

    def _append(self, call: Call[Any], part: DownloadPart) -> None:
        headers = {"Accept-Encoding": "identity", **part.headers}
        request = self._connection.request(replace(call, headers=headers))
        try:
            with closing(self._http.send(request, stream=True)) as response:
                if not response.is_success:
                    self._connection.read(call, response, self._body(response))
                part.begin(response.headers.get("Content-Range"))
                for chunk in response.iter_raw():
                    part.add(chunk)
        except httpx.RequestError as error:
            raise self._connection.failure(error, call) from error

    def send_upload(self, call: Call[Result], upload: FileUpload) -> Result:
        """Send a call with an open file, and close the file.

        If the server rejects the upload early and closes the connection, httpx still reads its response.
        """
        with closing(upload.file):
            if call.resumable is not None and upload.size >= RESUMABLE_BYTES:
                return send_resumably(self._exchange, call, call.resumable, upload)
            return self._exchange(call, upload)

    def _exchange(self, call: Call[Result], upload: FileUpload | None = None) -> Result:
        request = self._connection.request(call, upload)
        tries = TRIES
        while True:
            tries -= 1
            try:
                with closing(self._http.send(request, stream=True)) as response:
                    content = self._body(response)
            except httpx.RequestError as error:
                if tries and may_retry(call, error):
                    continue
                raise self._connection.failure(error, call) from error
            return self._connection.read(call, response, content)

    def _body(self, response: httpx.Response) -> bytes:
        content = bytearray()
        for piece in response.iter_bytes():
            content += piece
            self._connection.check_size(len(content))
        return bytes(content)


class AsyncTransport:
    """Sends calls without blocking the event loop.

    Files are sent and received in a thread with the blocking transport: reading and writing a file block, and
    asyncio discards an early response of the server if the connection breaks.
    """

    def __init__(self, connection: Connection, http: httpx.AsyncClient, uploads: BlockingTransport) -> None:
        self._connection = connection
        self._http = http
        self._uploads = uploads

    @classmethod
    def open(
        cls, connection: Connection, transport: httpx.AsyncBaseTransport | None = None
    ) -> AsyncTransport:
        """Create a transport with its own connection pools; ``transport`` replaces the network."""
        http = httpx.AsyncClient(
            transport=transport, trust_env=transport is None and connection.trust_environment
        )
        return cls(connection, http, BlockingTransport(connection))

    def acting_as(self, connection: Connection) -> AsyncTransport:
        """Return a transport for another account that shares the connection pools."""
        return AsyncTransport(connection, self._http, self._uploads)

    async def close(self) -> None:
        await self._http.aclose()
        self._uploads.close()

    async def send(self, call: Call[Result], progress: Progress | None = None) -> Result:
        """Return the result of a call; raises CollidiumError."""
        if call.download is not None:
            return cast(Result, await self._receive(call, call.download))
        if call.upload is None:
            return await self._exchange(call)
        upload = await asyncio.to_thread(FileUpload.open, call.upload, progress and _on_this_loop(progress))
        try:
            return await in_thread(partial(self._send_upload, call, upload), "upload")
        finally:
            # If the caller was cancelled, the upload ends.
            upload.abandoned = True

    async def _receive(self, call: Call[Any], download: Download) -> Path:
        if download.progress is not None:
            download.progress = _on_this_loop(download.progress)
        blocking = self._uploads.acting_as(self._connection)
        try:
            return await in_thread(partial(blocking.receive, call, download), "download")
        finally:
            download.abandoned = True

    def _send_upload(self, call: Call[Result], upload: FileUpload) -> Result:
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
                if tries and may_retry(call, error):
                    continue
                raise self._connection.failure(error, call) from error
            return self._connection.read(call, response, content)

    async def _body(self, response: httpx.Response) -> bytes:
        content = bytearray()
        async for piece in response.aiter_bytes():
            content += piece
            self._connection.check_size(len(content))
        return bytes(content)


def _on_this_loop(progress: Progress) -> Progress:
    """Return a callback that reports progress on the event loop of the caller."""
    loop = asyncio.get_running_loop()

    def report(sent: int, total: int) -> None:
        loop.call_soon_threadsafe(progress, sent, total)

    return report


class Waiting(Generic[Watched]):
    """The backoff and timeout of a wait, and the last state seen; it does no I/O."""

    def __init__(
        self,
        timeout: float | None,
        on_change: OnChange[Watched] | None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._clock = clock
        self._deadline = None if timeout is None else clock() + timeout
        self._on_change: OnChange[Watched] | None = on_change
        self._seen: Watched | None = None
        self._pause = FIRST_PAUSE
        self._trouble_since: float | None = None

    def has_ended(self, request: Watched) -> bool:
        """Report changes to ``on_change``; return whether the request has ended."""
        self._trouble_since = None
        if request != self._seen:
            self._seen = request
            if self._on_change is not None:
                self._on_change(request)
        return request.has_ended

    def pause(self) -> float:
        """Return the seconds until the next poll. Raises TimeoutError if no time is left."""
        pause = self._pause
        self._pause = min(self._pause * GROWTH, LONGEST_PAUSE)
        return self._within_time(pause)

    def pause_after(self, trouble: errors.CollidiumError) -> float:
        """Return the seconds until the next poll after a failed one. Raises the failure if it lasts."""
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
