"""A client that reaches a server in its own process, and acts for several accounts over one pool."""

import httpx
from quart import Quart, request

from collidium.client import AsyncClient


def whoever_calls() -> Quart:
    app = Quart("whoever")

    @app.get("/v1/me")
    async def me() -> tuple[dict[str, object], dict[str, str]]:
        assert "X-Admin-Token" not in request.headers
        assert "Cookie" not in request.headers
        name = request.headers["Authorization"].removeprefix("Bearer ")
        answer = {"hub_username": name, "credits": 0, "banned": False, "created_at": "2026-01-01T00:00:00Z"}
        return answer, {"Set-Cookie": f"proxy={name}; Path=/"}

    return app


async def test_a_server_in_process_serves_several_accounts() -> None:
    way = httpx.ASGITransport(whoever_calls())  # type: ignore[arg-type]  # Quart's own types are narrower
    async with AsyncClient("http://here", token="", admin_token="secret", transport=way) as nobody:  # noqa: S106
        alice, bob = nobody.acting_as("alice"), nobody.acting_as("bob")
        assert (await alice.me()).hub_username == "alice"
        assert (await bob.me()).hub_username == "bob"
        assert alice.backend == nobody.backend == "http://here"
