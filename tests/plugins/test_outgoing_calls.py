"""Every part of the server that calls another service, flooded while that service is slow."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from tests.stubs import Service, response
from tests.waiting import until

from collidium.client import AsyncClient
from collidium.contracts.identity import Identity
from collidium.hub.models import ModelQuery, ModelZoo
from collidium_plugins.hub_identity import HubIdentity
from collidium_plugins.webapps import context
from collidium_plugins.webapps.sign_in.flow import DISCOVERY, OAuthProvider
from collidium_runners.slurm.rest import RestBackend

LONG: Final = os.environ.get("COLLIDIUM_TEST_LONG") == "1"
FLOODS, ROUNDS, CALLERS = (10, 6, 500) if LONG else (1, 2, 60)
#: Seconds that a slow response takes, and that callers wait for one.
DELAY, DEADLINE = (0.3, 5.0) if LONG else (0.02, 1.0)
#: Turns of the event loop between a response and the disconnect of those who wait, and their number.
TURNS, WAITING = (40, 120) if LONG else (12, 30)
RECOVERY_SECONDS: Final = 1.0

Ask = Callable[[int], Awaitable[Any]]


class SlowService(Service):
    """Answers each user's calls as that user expects, ``delay`` seconds late."""

    def __init__(self) -> None:
        super().__init__()
        self.delay = 0.0
        self.held = 0

    async def respond(self, head: bytes) -> bytes:
        self.held += 1
        await asyncio.sleep(self.delay)
        await self.gate.wait()
        self.held -= 1
        return response(200, json.dumps(self.document(head.split()[1].decode())))

    def document(self, path: str) -> object:
        if path.endswith(DISCOVERY):
            names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            return {"issuer": self.url} | {name: f"{self.url}/{name}" for name in names}
        if "/api/models" in path or "/v1/requests" in path:
            return []
        return {"type": "user", "name": "ada", "jobs": []}


@pytest.fixture
async def service() -> AsyncIterator[SlowService]:
    async with SlowService().running() as service:
        yield service


@pytest.fixture(params=["identity", "model zoo", "sign-in", "slurm", "pages"])
async def ask(request: pytest.FixtureRequest, service: SlowService, tmp_path: Path) -> AsyncIterator[Ask]:
    """Makes the call with a number that no other call has."""
    async with AsyncExitStack() as stack:
        match request.param:
            case "identity":
                provider = HubIdentity(service.url, timeout_seconds=DEADLINE)
                stack.push_async_callback(provider.close)

                async def identify(number: int) -> None:
                    assert await provider.identify(f"token-{number}") == Identity("ada")

                yield identify
            case "model zoo":
                zoo = ModelZoo(service.url, "collidium", timeout_seconds=DEADLINE)
                stack.push_async_callback(zoo.close)
                yield lambda number: zoo.models(ModelQuery(search=str(number)))
            case "sign-in":
                signing_in = OAuthProvider(service.url)
                stack.push_async_callback(signing_in.close)
                yield lambda number: signing_in.token(f"code={number}", {})
            case "slurm":
                (tmp_path / "token").write_text("token")
                backend = RestBackend(service.url, "v0.0.38", "ada", tmp_path / "token", DEADLINE)
                stack.push_async_callback(backend.close)
                yield lambda number: backend.tasks([number])
            case "pages":
                pages = AsyncClient(service.url, token="token", transport=context.over_http())
                await stack.enter_async_context(pages)
                yield lambda number: pages.requests(cursor=str(number))


async def test_flood_leaves_every_connection_usable(ask: Ask, service: SlowService) -> None:
    numbers = count()
    await ask(next(numbers))
    for _ in range(FLOODS):
        service.delay = DELAY
        for _ in range(ROUNDS):
            callers = [asyncio.ensure_future(ask(next(numbers))) for _ in range(CALLERS)]
            await asyncio.wait(callers, timeout=DEADLINE + DELAY)
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
        service.delay = 0.0
        async with asyncio.timeout(RECOVERY_SECONDS):
            await ask(next(numbers))


async def test_disconnects_leave_every_connection_usable(ask: Ask, service: SlowService) -> None:
    """Callers disconnect at every moment between the response to one call and the start of the next."""
    numbers = count()
    for turns in range(TURNS):
        service.gate.clear()
        callers = [asyncio.ensure_future(ask(next(numbers))) for _ in range(WAITING)]
        await until(lambda: service.held > 0)
        service.gate.set()
        await until(lambda: service.held == 0)
        for _ in range(turns):
            await asyncio.sleep(0)
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    async with asyncio.timeout(RECOVERY_SECONDS):
        await ask(next(numbers))
