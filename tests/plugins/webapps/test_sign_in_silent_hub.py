"""Sign-ins while the hub accepts calls and does not answer."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import until

from collidium.errors import Unavailable
from collidium_plugins.webapps.sign_in import hub as sign_in_hub
from collidium_plugins.webapps.sign_in.hub import Hub


async def test_sign_ins_wait_together_for_a_silent_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_hub, "TIMEOUT_SECONDS", 1.0)
    calls = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        hub = Hub(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        visits = [asyncio.create_task(hub.provider()) for _ in range(20)]
        await until(lambda: any(visit.done() for visit in visits))
        outcomes = await asyncio.wait_for(asyncio.gather(*visits, return_exceptions=True), 1)
        assert {type(outcome) for outcome in outcomes} == {Unavailable}
        assert calls <= 1, "each asked on its own"
        await hub.close()
