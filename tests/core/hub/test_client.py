"""Errors of the hub: transient or permanent, without tokens; and timeouts."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

import httpx
import pytest
from tests.stubs import listening, response
from tests.waiting import until

from collidium.hub import client
from collidium.hub.client import Hub, HubError, HubRefused, HubUnavailable
from collidium.runtime.network import Deadline, keep_deadline

KEPT = "hf_tokenoftheuser"


def answering(status: int, body: str, *headers: str) -> AbstractAsyncContextManager[str]:
    """A hub that answers everything with the same; its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response(status, body, "Connection: close", *headers))
        await writer.drain()
        writer.close()

    return listening(answer)


async def outcome(status: int, body: str = "{}") -> HubError:
    async with answering(status, body) as url:
        with pytest.raises(HubError) as caught:
            await Hub(url, KEPT).ask(lambda api: api.create_repo("ada/events", repo_type="dataset"))
    assert KEPT not in f"{caught.value} {caught.value!r}"
    return caught.value


@pytest.mark.parametrize("status", [404, 408, 409, 412, 429, 500, 502, 503, 504])
async def test_transient_statuses_are_unavailable(status: int) -> None:
    error = await outcome(status)
    assert isinstance(error, HubUnavailable)
    assert str(status) in str(error)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 413, 422])
async def test_permanent_statuses_are_refused(status: int) -> None:
    assert isinstance(await outcome(status), HubRefused)


async def test_the_hubs_reason_is_one_line_without_the_token() -> None:
    reason = f"Storage of ada\r\nis full, {KEPT} " + "x" * 1000
    error = await outcome(403, json.dumps({"error": reason}))
    assert "Storage of ada is full, …" in str(error)
    assert len(str(error)) < 500


@pytest.mark.parametrize("body", ["<html>Welcome</html>", "", "[]", "null"])
async def test_invalid_responses_are_unavailable(body: str) -> None:
    assert isinstance(await outcome(200, body), HubUnavailable)


async def test_an_unreachable_hub_is_unavailable(unused_tcp_port: int) -> None:
    with pytest.raises(HubUnavailable, match="cannot be reached"):
        await Hub(f"http://127.0.0.1:{unused_tcp_port}", KEPT).ask(lambda api: api.whoami())


async def test_calls_time_out() -> None:
    released = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    async with listening(say_nothing) as url:
        with pytest.raises(HubUnavailable, match="within"):
            await Hub(url, KEPT).ask(lambda api: api.whoami(), seconds=0.2)
        released.set()


def test_calls_without_a_timeout_work(unused_tcp_port: int) -> None:
    """No socket takes an infinite number of seconds."""
    with httpx.Client(timeout=None) as client:  # noqa: S113 -- that is the case
        keep_deadline(Deadline(), client)
        with pytest.raises(httpx.ConnectError):
            client.get(f"http://127.0.0.1:{unused_tcp_port}")


async def test_a_slow_response_blocks_no_thread() -> None:
    ended, closed = asyncio.Event(), asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        with suppress(OSError):
            while not ended.is_set():
                writer.write(b" ")
                await writer.drain()
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), 0.02)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        closed.set()

    def asking() -> bool:
        return any(thread.name == "collidium-hub" for thread in threading.enumerate())

    async with listening(drip) as url:
        with pytest.raises(HubUnavailable, match="within"):
            await Hub(url, KEPT).ask(lambda api: api.whoami(), seconds=0.2)
        try:
            await until(lambda: not asking(), 5)
        finally:
            ended.set()
            await closed.wait()


async def test_retry_after_is_removed_from_responses() -> None:
    client.prepare()
    from huggingface_hub import get_session

    async with answering(503, "", "Retry-After: 86400", 'RateLimit: "api";r=0;t=86400') as url:
        response = await asyncio.to_thread(lambda: get_session().get(url))
    assert response.status_code == 503
    assert not {"retry-after", "ratelimit"} & set(response.headers)


async def test_calls_to_this_machine_pass_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    client.prepare()
    from huggingface_hub import close_session

    for name in ("HTTP_PROXY", "NO_PROXY"):
        for spelling in (name, name.lower()):
            monkeypatch.setenv(spelling, "http://127.0.0.1:1" if name == "HTTP_PROXY" else "")
    await asyncio.to_thread(close_session)  # the next one reads the environment
    async with answering(200, '{"name": "ada"}') as url:
        assert (await Hub(url, KEPT).ask(lambda api: api.whoami()))["name"] == "ada"
    monkeypatch.undo()
    await asyncio.to_thread(close_session)


async def test_errors_of_the_caller_are_not_converted() -> None:
    def refuse(api: object) -> None:
        raise HubRefused("there is something else")

    check: Callable[[object], None] = refuse
    with pytest.raises(HubRefused, match="something else"):
        await Hub("http://127.0.0.1:1", KEPT).ask(check)


async def test_lack_of_threads_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    with pytest.raises(HubUnavailable, match="threads"):
        await Hub("http://127.0.0.1:1", KEPT).ask(lambda api: api.whoami())
