"""Request bodies with a bounded buffer, and the requests and connections that feed them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from functools import cached_property
from time import monotonic
from typing import Any, Final, cast

import quart
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, HTTPResponseStartEvent
from quart.wrappers.request import Body as QuartBody

from collidium.errors import BadRequest, TooLarge
from collidium.overrides.quart import HTTPConnection

#: Bytes that are buffered for a slow handler before the connection stops reading. Hypercorn buffers another
#: ten messages of 64 KiB.
HIGH_WATER: Final = 256 * 1024

#: A declared body up to this size is always read to its end, which keeps the connection usable.
SMALL: Final = 1024 * 1024

#: Minimum bytes per second over the time that was waited for a body. Otherwise a client could hold a
#: connection, a file and a handler indefinitely with a byte now and then.
SLOWEST: Final = 1000

#: How long a rejected client may continue sending before the connection is closed. Closing at once would
#: reset the connection, and the client could lose the response.
LINGER_SECONDS: Final = 5.0

#: Delay before a request without a body is watched for a disconnect: most are answered by then.
UNHEARD_SECONDS: Final = 0.05


class RequestBody(QuartBody):
    """The body of a request, read in chunks (``async for``) or as a whole (``await``).

    Raises :class:`~collidium.errors.TooLarge` above ``limit``, and :class:`~collidium.errors.BadRequest` for
    a body that is truncated, stalls for longer than ``patience`` seconds, or is slower than ``SLOWEST`` once
    it was waited for so long in total.
    """

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        #: Maximum size; a handler may change it before reading.
        self.limit = max_content_length
        #: Seconds without a byte after which the body is rejected.
        self.patience: float | None = None
        self._declared = expected_content_length
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._received = 0
        self._waited = 0.0
        self._whole: bytes | None = None
        self._truncated = False
        self._stalled = False
        self._discarding = False
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    # -- called by the handler -------------------------------------------------------------------------

    def check_limit(self) -> None:
        """Raise TooLarge if the declared or the received size exceeds the limit."""
        size = max(self._declared or 0, self._received)
        if self.limit is not None and size > self.limit:
            raise TooLarge(f"the body is larger than {self.limit:,} bytes, the limit for this request")

    def __aiter__(self) -> RequestBody:
        return self

    async def __anext__(self) -> bytes:
        self.check_limit()
        while not self._chunks:
            if self._truncated:
                raise BadRequest("the body was truncated")
            if self._ended.is_set():
                raise StopAsyncIteration
            await self._wait_for_change()
            self.check_limit()
        chunk = self._chunks.popleft()
        self._buffered -= len(chunk)
        if self._buffered < HIGH_WATER:
            self._room.set()
        return chunk

    def __await__(self) -> Generator[Any, None, bytes]:
        return self._read_whole().__await__()

    async def _read_whole(self) -> bytes:
        if self._whole is None:
            self._whole = b"".join([chunk async for chunk in self])
        return self._whole

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        since = monotonic()
        try:
            async with asyncio.timeout(self.patience):
                await self._changed.wait()
        except TimeoutError:
            self._stalled = True
            raise BadRequest(f"the body stood still for {self.patience:g} s and was rejected") from None
        self._waited += monotonic() - since
        if self.patience is not None and self._waited > max(self.patience, self._received / SLOWEST):
            self._stalled = True
            raise BadRequest(f"the body came slower than {SLOWEST:,} bytes a second and was rejected")

    def clear(self) -> None:
        """Discard what ``await`` returned."""
        self._whole = b""

    # -- called by the connection ------------------------------------------------------------------------

    def append(self, data: bytes) -> None:
        """Buffer received bytes, regardless of the limit of the buffer."""
        self._received += len(data)
        if data and not self._discarding:
            self._chunks.append(data)
            self._buffered += len(data)
            if self._buffered >= HIGH_WATER:
                self._room.clear()
        self._changed.set()

    async def wait_for_room(self) -> None:
        """Wait until the buffer has room."""
        await self._room.wait()

    def set_complete(self) -> None:
        """Mark the body as complete."""
        self._ended.set()
        self._changed.set()

    def set_disconnected(self) -> None:
        """Mark the connection as closed by the client; an incomplete body is truncated.

        It does not wake a handler that reads: the connection cancels the handler, and an exception before
        that would move the cancellation into the handler's cleanup.
        """
        self._truncated = not self._ended.is_set()
        self._ended.set()

    def discard(self) -> None:
        """Drop the buffer and all further bytes."""
        self._discarding = True
        self._chunks.clear()
        self._buffered = 0
        self._room.set()

    @property
    def is_small(self) -> bool:
        """Whether the declared size is small."""
        return self._declared is not None and self._declared <= SMALL

    async def wait_until_ended(self, seconds: float | None) -> bool:
        """Wait up to ``seconds`` for the end of the body; return whether it has come."""
        if self._ended.is_set() or self._stalled:
            return self._ended.is_set()
        before = self._received
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            self._stalled = bool(seconds) and self._received == before
            return False
        return True


class Request(quart.Request):
    """A request with a :class:`RequestBody`.

    Before reading, a handler may set ``max_content_length`` to override the app's ``MAX_CONTENT_LENGTH``.
    """

    body_class = RequestBody
    body: RequestBody

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.body.patience = self.body_timeout

    @cached_property  # Quart reads it three times per request
    def blueprints(self) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]  # a property there
        return super().blueprints

    @property
    def max_content_length(self) -> int | None:
        return self.body.limit

    @max_content_length.setter
    def max_content_length(self, value: int | None) -> None:
        self.body.limit = value

    async def get_data(  # type: ignore[override]  # the overloads add nothing here
        self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False
    ) -> str | bytes:
        """Return the whole body; raises BadRequest for text that is not UTF-8."""
        try:
            return await super().get_data(cache=cache, as_text=as_text, parse_form_data=parse_form_data)
        except UnicodeDecodeError as error:
            raise BadRequest(f"the body is not UTF-8 at byte {error.start}") from None

    async def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        """Parse the body as JSON; raises BadRequest with the position of the error."""
        try:
            return await super().get_json(force=force, silent=silent, cache=cache)
        except RecursionError:
            raise BadRequest("the JSON document is nested too deeply") from None

    def on_json_loading_failed(self, error: Exception) -> Any:
        raise BadRequest(f"the body is not JSON: {error}") from None


class ResponseSender:
    """Sends the response, and handles the rest of the request's body.

    Success responses are sent after the whole body has arrived. Errors are sent at once, with ``Connection:
    close`` if much of the body is missing, and end when the client has stopped sending or a timeout expires.
    Ending them earlier would deadlock: Hypercorn would wait for room in the queue that the connection reads.
    """

    def __init__(self, request: Request, send: ASGISendCallable) -> None:
        self._request = request
        self._send = send
        #: Whether the whole response was sent.
        self.ended = False

    async def __call__(self, message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start":
            await self._start(message)
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            await self._request.body.wait_until_ended(LINGER_SECONDS)
            self.ended = True
        await self._send(message)

    async def _start(self, message: HTTPResponseStartEvent) -> None:
        body = self._request.body
        body.discard()
        patience = LINGER_SECONDS if body.is_small else body.patience if message["status"] < 400 else 0
        if not await body.wait_until_ended(patience):
            message["headers"] = [*message["headers"], (b"connection", b"close")]


class RequestConnection(HTTPConnection):
    """One request and its response; stops reading from the socket while the body's buffer is full."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        request = cast(Request, self.make_request(send))
        sender = ResponseSender(request, send)
        handler = cast("asyncio.Task[None]", asyncio.current_task())
        receiver: asyncio.Task[None] | None = None

        def start_receiver() -> None:
            nonlocal receiver
            receiver = asyncio.create_task(self.handle_messages(request, receive))
            receiver.add_done_callback(cancel_handler)

        def cancel_handler(receiver: asyncio.Task[None]) -> None:
            # A disconnect after the response must not cancel the handler's last steps.
            if not (receiver.cancelled() or sender.ended):
                handler.cancel()

        starting = None
        try:
            if request.content_length or "Transfer-Encoding" in request.headers:
                start_receiver()
                await asyncio.sleep(0)  # receive what came with the headers first
            else:
                request.body.set_complete()
                starting = asyncio.get_running_loop().call_later(UNHEARD_SECONDS, start_receiver)
            await self.handle_request(request, cast(ASGISendCallable, sender))
        except asyncio.CancelledError:
            if receiver is None or not receiver.done():
                raise
            handler.uncancel()
            receiver.result()
        finally:
            if starting is not None:
                starting.cancel()
            if receiver is not None:
                receiver.cancel()

    async def handle_messages(self, request: quart.Request, receive: ASGIReceiveCallable) -> None:
        """Feed the body until the client disconnects, which cancels an unfinished handler."""
        body = cast(Request, request).body
        while True:
            message = await receive()
            if message["type"] == "http.request":
                body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    body.set_complete()
                await body.wait_for_room()
            elif message["type"] == "http.disconnect":
                body.set_disconnected()
                return


def install(app: quart.Quart) -> None:
    """Give ``app`` request bodies with backpressure.

    ``app.config``: ``MAX_CONTENT_LENGTH`` is the default size limit, ``BODY_TIMEOUT`` the seconds for which a
    body may stall. Responses have no timeout while they are being read.
    """
    app.config["RESPONSE_TIMEOUT"] = None
    app.request_class = Request
    app.asgi_http_class = RequestConnection
