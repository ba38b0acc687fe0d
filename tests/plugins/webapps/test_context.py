"""Calls of the backend within the process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from quart import Quart, g, request

from collidium_plugins.webapps import context


@pytest.fixture
def app() -> Quart:
    """A backend that reports what it knows of a request."""
    app = Quart("backend", static_folder=None)

    @app.get("/")
    async def show() -> dict[str, object]:
        forwarded = request.headers.getlist("X-Forwarded-For")
        known = {"caller": g.get("caller"), "address": request.remote_addr, "forwarded": forwarded}
        g.caller = "the backend's"
        return known

    return app


@pytest.fixture
async def client(app: Quart) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=context.in_process(app), base_url="http://here") as client:
        yield client


async def test_call_in_process_knows_no_other_caller(app: Quart, client: httpx.AsyncClient) -> None:
    async with app.test_request_context("/"):
        g.caller = "the page's"
        for _ in range(2):
            assert (await client.get("/")).json()["caller"] is None
        assert g.caller == "the page's"


async def test_call_in_process_has_the_browsers_address(app: Quart, client: httpx.AsyncClient) -> None:
    headers = {"Remote-Addr": "192.0.2.9", "X-Forwarded-For": "192.0.2.1"}  # as Quart keeps an address
    async with app.test_request_context("/", headers=headers):
        known = (await client.get("/")).json()
    assert (known["address"], known["forwarded"]) == ("192.0.2.9", ["192.0.2.1"])
