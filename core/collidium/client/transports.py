"""Sends calls over httpx, blocking or not."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, closing
from functools import cached_property, partial
from typing import TypeVar

import httpx

from collidium.client.calls.call import Call
from collidium.client.connection import Connection, worth_another_try
from collidium.client.resuming import send_resumably
from collidium.client.uploads import Progress, Upload
from collidium.runtime.waiting import in_thread

Result = TypeVar("Result")

#: Files of this size are sent so that a connection that breaks costs little.
RESUMABLE_BYTES = 100 * 1024**2
#: How often a call is sent that changes nothing, when the connection breaks under it.
TRIES = 3


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
