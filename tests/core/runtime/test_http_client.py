"""Outgoing calls while name servers are silent, and when a client is closed."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from tests.stubs import listening
from tests.waiting import until

from collidium.runtime.http_client import HttpClient, NoResponse
from collidium.runtime.network import BoundedTransport

CALLS = 20


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``silent.example`` gets no answer; ``two.example`` has an address without a server, and one with."""
    ended, look_up = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host in {"silent.example", b"silent.example"}:
            ended.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "no name server answers")
        if host in {"two.example", b"two.example"}:
            return [
                (family, socket.SOCK_STREAM, 6, "", (address, port))
                for family, address in ((socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1"))
            ]
        return look_up(host, port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    ended.set()


@pytest.fixture
async def heads() -> AsyncIterator[tuple[str, list[bytes]]]:
    """The address of a server that does not answer ``/silent``, and the heads of its requests."""
    received: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        if b"/silent" in received[-1]:
            await reader.read()
        else:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()
        writer.close()

    async with listening(serve) as url:
        yield url, received


async def test_silent_name_server_leaves_other_threads(names: None) -> None:
    client = HttpClient(0.2, CALLS)
    calls = (client.call("GET", "http://silent.example/", 1) for _ in range(CALLS))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {NoResponse}
    async with asyncio.timeout(1):
        await asyncio.to_thread(str)
    assert sum(thread.name == "collidium-look-up" for thread in threading.enumerate()) == 1
    await client.close()


async def test_call_tries_each_address_under_the_same_name(
    names: None, heads: tuple[str, list[bytes]]
) -> None:
    url, received = heads
    port, client = url.rpartition(":")[2], HttpClient(5, 1)
    response = await client.call("GET", f"http://two.example:{port}/", 1)
    await client.close()
    assert response.status_code == 204
    assert f"Host: two.example:{port}\r\n".encode() in received[0]


async def test_a_call_may_take_longer_than_others() -> None:
    """As that of pages apart from their server that submit predictions, which are then scored."""
    scored = asyncio.Event()

    async def score(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await scored.wait()
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    client = httpx.AsyncClient(transport=BoundedTransport(HttpClient(0.2, 2), 1))
    async with listening(score) as url, client:
        submission = asyncio.create_task(client.post(url, timeout=30))
        with pytest.raises(httpx.TimeoutException):
            await client.get(url, timeout=0.1)
        scored.set()
        assert (await submission).status_code == 204


async def test_a_compressed_body_counts_as_it_was_sent() -> None:
    """It was not asked for; unpacked, the first of its bytes could be a thousand times the limit."""
    bomb = gzip.compress(bytes(10**7))

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"Accept-Encoding: identity\r\n" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb))
        writer.write(bomb)
        await writer.drain()
        writer.close()

    client = HttpClient(5, 1)
    async with listening(send) as url:
        assert (await client.call("GET", url, 10**6)).content == bomb
    await client.close()


async def test_closed_client_begins_no_call_that_waited(heads: tuple[str, list[bytes]]) -> None:
    url, received = heads
    client = HttpClient(5, 1)
    calls = [asyncio.create_task(client.call("GET", f"{url}/silent", 1)) for _ in range(3)]
    await until(lambda: len(received) == 1)
    await client.close()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes[1:]] == [NoResponse] * 2
    assert len(received) == 1
