"""Calls of the backend that stay in the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from quart import Quart, Response, g, request

from collidium.api import bodies
from collidium.errors import BadRequest, TooLarge
from collidium_plugins.webapps import ways

PIECE = bytes(64 * 1024)


@pytest.fixture
def app() -> Quart:
    """A backend that says what it was asked, and how much it takes."""
    app = Quart("backend", static_folder=None)
    bodies.install(app)

    @app.post("/whole")
    async def whole() -> dict[str, int]:
        return {"size": len(await request.body)}

    @app.post("/small")
    async def small() -> Response:
        request.max_content_length = 1_000_000
        await request.body
        return Response("taken")

    @app.get("/who")
    async def who() -> Response:
        told = f"{g.get('who', 'nobody')} {request.headers.get('Cookie', 'no cookie')}"
        g.who = "somebody"
        return Response(told, headers={"Set-Cookie": "who=somebody"})

    @app.get("/whence")
    async def whence() -> dict[str, object]:
        return {"address": request.remote_addr, "passed": request.headers.getlist("X-Forwarded-For")}

    @app.errorhandler(TooLarge)
    async def refuse(error: TooLarge) -> Response:
        return Response(error.detail, status=413)

    return app


async def test_a_call_knows_nothing_of_the_request_that_makes_it(app: Quart) -> None:
    async with ways.forwarding("http://here", app) as forwarding, app.test_request_context("/"):
        g.who = "the caller"
        answers = [await forwarding.calls.get("/who") for _ in range(2)]
        assert [answer.text for answer in answers] == ["nobody no cookie"] * 2
        assert g.who == "the caller"


async def test_call_comes_from_the_address_of_the_browser(app: Quart) -> None:
    headers = {"Remote-Addr": "192.0.2.9", "X-Forwarded-For": "192.0.2.1"}  # as Quart keeps an address
    visit = app.test_request_context("/", headers=headers)
    async with ways.forwarding("http://here", app) as forwarding, visit:
        answer = await forwarding.calls.get("/whence")
    assert answer.json() == {"address": "192.0.2.9", "passed": ["192.0.2.1"]}


async def test_a_body_passes_through(app: Quart) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield PIECE

    async with ways.forwarding("http://here", app) as forwarding:
        answer = await forwarding.uploads.post("/whole", content=pieces())
    assert answer.json() == {"size": 100 * len(PIECE)}


async def test_a_refusal_does_not_wait_for_the_rest(app: Quart) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += len(PIECE)
            yield PIECE
            await asyncio.sleep(0)  # as one that comes from a connection

    async with ways.forwarding("http://here", app) as forwarding:
        headers = {"Content-Length": "9000000000"}
        answer = await forwarding.uploads.post("/small", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert sent < 2_000_000


async def test_who_fails_to_send_learns_why(app: Quart) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield PIECE
        raise BadRequest("the body stood still")

    async with ways.forwarding("http://here", app) as forwarding:
        with pytest.raises(BadRequest, match="stood still"):
            await forwarding.uploads.post("/whole", content=broken())
