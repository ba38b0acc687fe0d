"""Quart's HTTP connection and request, with bodies that wait."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import Any, Final, cast

import quart
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, HTTPResponseStartEvent
from quart.asgi import ASGIHTTPConnection

from collidium.api.bodies.body import Body
from collidium.errors import BadRequest

#: How long a refused client may go on sending before the connection is closed on it. Closing at once would
#: reset the connection, and the refusal would be lost on its way to the client.
LINGER_SECONDS: Final = 5.0

#: How long a client without a body may be gone before its handler is cancelled: most are answered by then.
UNHEARD_SECONDS: Final = 0.05


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

    @cached_property
    def blueprints(self) -> list[str]:  # Quart looks three times for each request
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
