"""Request bodies that hold only a little at a time, in connections and requests of Quart."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from functools import cached_property
from time import monotonic
from typing import Any, Final, cast

import quart
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, HTTPResponseStartEvent
from quart.asgi import ASGIHTTPConnection
from quart.wrappers.request import Body as QuartBody

from collidium.errors import BadRequest, TooLarge

#: Bytes kept for a slow handler before the connection stops reading. The server in front keeps some more:
#: ten messages of 64 KiB in Hypercorn, and what the kernel takes.
HIGH_WATER: Final = 256 * 1024

#: A declared body of this size is read to its end whatever the answer is, so that the connection lives on.
SMALL: Final = 1024 * 1024

#: Bytes a second that a body comes with at least, over the time that was waited for it: a byte now and then
#: would otherwise hold a connection, a file and a handler for as long as a client likes.
SLOWEST: Final = 1000

#: How long a refused client may go on sending before the connection is closed on it. Closing at once would
#: reset the connection, and the refusal would be lost on its way to the client.
LINGER_SECONDS: Final = 5.0

#: How long a client without a body may be gone before its handler is cancelled: most are answered by then.
UNHEARD_SECONDS: Final = 0.05


class Body(QuartBody):
    """The bytes of a request, taken in pieces (``async for``) or as a whole (``await``).

    Raises :class:`~collidium.errors.TooLarge` past ``limit``, and :class:`~collidium.errors.BadRequest` for
    a body that breaks off, stands still for longer than ``patience`` seconds, or comes slower than
    ``SLOWEST`` once so long was waited in all.
    """

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        #: The largest size taken; a handler may change it until it reads.
        self.limit = max_content_length
        #: Seconds without a byte after which the body is given up.
        self.patience: float | None = None
        self._declared = expected_content_length
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._received = 0
        self._waited = 0.0
        self._whole: bytes | None = None
        self._broken = False
        self._stalled = False
        self._discarding = False
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    # -- what a handler does ---------------------------------------------------------------------------

    def check_limit(self) -> None:
        """Raise TooLarge when the declared size, or what has come so far, is past the limit."""
        size = max(self._declared or 0, self._received)
        if self.limit is not None and size > self.limit:
            raise TooLarge(f"the body is larger than {self.limit:,} bytes, the most that is taken here")

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        self.check_limit()
        while not self._chunks:
            if self._broken:
                raise BadRequest("the body broke off before its end")
            if self._ended.is_set():
                raise StopAsyncIteration
            await self._wait_for_news()
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

    async def _wait_for_news(self) -> None:
        self._news.clear()
        since = monotonic()
        try:
            async with asyncio.timeout(self.patience):
                await self._news.wait()
        except TimeoutError:
            self._stalled = True
            raise BadRequest(f"the body stood still for {self.patience:g} s and was given up") from None
        self._waited += monotonic() - since
        if self.patience is not None and self._waited > max(self.patience, self._received / SLOWEST):
            self._stalled = True
            raise BadRequest(f"the body came slower than {SLOWEST:,} bytes a second and was given up")

    def clear(self) -> None:
        """Forget what ``await`` returned."""
        self._whole = b""

    # -- what the connection does ------------------------------------------------------------------------

    def append(self, data: bytes) -> None:
        """Take bytes that have come, whether there is room or not."""
        self._received += len(data)
        if data and not self._discarding:
            self._chunks.append(data)
            self._buffered += len(data)
            if self._buffered >= HIGH_WATER:
                self._room.clear()
        self._news.set()

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._room.wait()

    def set_complete(self) -> None:
        """The body is whole."""
        self._ended.set()
        self._news.set()

    def break_off(self) -> None:
        """The client is gone; a body that was not whole never will be.

        Wakes no waiter: the connection cancels the handler, and an error first would let the cancellation hit
        the handler's cleaning up.
        """
        self._broken = not self._ended.is_set()
        self._ended.set()

    def discard(self) -> None:
        """The rest is not read: drop what is here and what still comes."""
        self._discarding = True
        self._chunks.clear()
        self._buffered = 0
        self._room.set()

    @property
    def is_small(self) -> bool:
        """Whether the client said that it sends little."""
        return self._declared is not None and self._declared <= SMALL

    async def ended(self, seconds: float | None) -> bool:
        """Wait until the last byte has come, for so many seconds at most; whether it has."""
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
    """A request whose body waits for the handler.

    A handler sets ``max_content_length`` before it reads, to take more or less than the app's
    ``MAX_CONTENT_LENGTH``.
    """

    body_class = Body
    body: Body

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.body.patience = self.body_timeout

    @cached_property  # Quart looks three times for each request
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
        """The whole body; raises BadRequest when it should be text and is not UTF-8."""
        try:
            return await super().get_data(cache=cache, as_text=as_text, parse_form_data=parse_form_data)
        except UnicodeDecodeError as error:
            raise BadRequest(f"the body is not UTF-8 at byte {error.start}") from None

    async def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        """The body as JSON; raises BadRequest that says where it is wrong."""
        try:
            return await super().get_json(force=force, silent=silent, cache=cache)
        except RecursionError:
            raise BadRequest("the JSON document is nested too deeply") from None

    def on_json_loading_failed(self, error: Exception) -> Any:
        raise BadRequest(f"the body is not JSON: {error}") from None


class Answer:
    """Sends the response, and sees to what is still coming of the request.

    A success is sent after the whole body has come. A refusal is sent at once, with ``Connection: close``
    when much is still to come, and ends when the client has stopped sending or its time is up. Ending it
    earlier would deadlock: Hypercorn then waits for room in the queue that the connection reads.
    """

    def __init__(self, request: Request, send: ASGISendCallable) -> None:
        self._request = request
        self._send = send
        #: Whether the whole response has been handed over.
        self.ended = False

    async def __call__(self, message: ASGISendEvent) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            await self._request.body.ended(LINGER_SECONDS)
            self.ended = True
        await self._send(message)

    async def _begin(self, message: HTTPResponseStartEvent) -> None:
        body = self._request.body
        body.discard()
        patience = LINGER_SECONDS if body.is_small else body.patience if message["status"] < 400 else 0
        if not await body.ended(patience):
            message["headers"] = [*message["headers"], (b"connection", b"close")]


class Connection(ASGIHTTPConnection):
    """One request and its response; stops reading from the socket while the body has no room."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        request = cast(Request, self._create_request_from_scope(send))
        answer = Answer(request, send)
        handler = cast("asyncio.Task[None]", asyncio.current_task())
        receiver: asyncio.Task[None] | None = None

        def start_receiver() -> None:
            nonlocal receiver
            receiver = asyncio.create_task(self.handle_messages(request, receive))
            receiver.add_done_callback(cancel_handler)

        def cancel_handler(receiver: asyncio.Task[None]) -> None:
            # The disconnect that follows a whole response must not cut the handler's last steps.
            if not (receiver.cancelled() or answer.ended):
                handler.cancel()

        starting = None
        try:
            if request.content_length or "Transfer-Encoding" in request.headers:
                start_receiver()
                await asyncio.sleep(0)  # what came with the head is there before the handler waits for it
            else:
                request.body.set_complete()
                starting = asyncio.get_running_loop().call_later(UNHEARD_SECONDS, start_receiver)
            await self.handle_request(request, cast(ASGISendCallable, answer))
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
        """Feed the body until the client is gone; the handler is cancelled then, unless it has answered."""
        body = cast(Request, request).body
        while True:
            message = await receive()
            if message["type"] == "http.request":
                body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    body.set_complete()
                await body.room()
            elif message["type"] == "http.disconnect":
                body.break_off()
                return


def install(app: quart.Quart) -> None:
    """Give ``app`` bodies that wait.

    ``app.config`` then means: ``MAX_CONTENT_LENGTH`` the largest body unless the handler says otherwise,
    ``BODY_TIMEOUT`` the seconds that a body may stall. No clock ends a response while it is read.
    """
    app.config["RESPONSE_TIMEOUT"] = None
    app.request_class = Request
    app.asgi_http_class = Connection
