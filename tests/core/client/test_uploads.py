"""Uploads of files: in chunks, with progress, and with early errors of the server."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import tracemalloc
from pathlib import Path

import pytest
from tests.core.client.servers import answering, read_headers, response, serving

from collidium.client import AsyncClient, Client
from collidium.errors import InvalidInput, TooLarge, Unauthenticated, Unreachable

MEBIBYTE = 1024**2
RECEIPT = {"valid": True, "rows": 3, "warnings": []}


def refusing(status: str, detail: str) -> bytes:
    document = {"type": "about:blank", "title": "No", "status": int(status[:3]), "detail": detail}
    return response(status, json.dumps(document).encode(), "application/problem+json")


@pytest.fixture
def large_file(tmp_path: Path) -> Path:
    """64 MiB that take no room on disk."""
    path = tmp_path / "predictions.parquet"
    with path.open("wb") as file:
        file.truncate(64 * MEBIBYTE)
    return path


class Receiver:
    """Takes a whole body, like a server that is content."""

    def __init__(self) -> None:
        self.headers = b""
        self.received = 0

    def __call__(self, connection: socket.socket) -> None:
        head, _, body = read_headers(connection).partition(b"\r\n\r\n")
        self.headers = head
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        self.received = len(body)
        while self.received < length:
            piece = connection.recv(MEBIBYTE)
            if not piece:
                return
            self.received += len(piece)
        connection.sendall(response("200 OK", json.dumps(RECEIPT).encode(), "application/json"))


def test_a_file_is_streamed_with_its_length_and_progress(large_file: Path) -> None:
    receiver, steps = Receiver(), []
    with serving(receiver) as url, Client(url, "t") as client:
        tracemalloc.start()
        checked = client.check("tracking", large_file, lambda sent, total: steps.append((sent, total)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert checked.rows == 3
    assert receiver.received == 64 * MEBIBYTE
    assert b"transfer-encoding" not in receiver.headers.lower()
    assert b"application/vnd.apache.parquet" in receiver.headers
    assert steps == [(n * MEBIBYTE, 64 * MEBIBYTE) for n in range(65)]
    assert peak < 8 * MEBIBYTE


async def test_the_async_client_streams_and_reports_progress(large_file: Path) -> None:
    receiver, steps, threads = Receiver(), [], set()

    def progress(sent: int, total: int) -> None:
        steps.append(sent)
        threads.add(threading.current_thread())

    with serving(receiver) as url:
        async with AsyncClient(url, "t") as client:
            assert (await client.check("tracking", large_file, progress)).valid
    assert receiver.received == 64 * MEBIBYTE
    assert steps == [n * MEBIBYTE for n in range(65)]
    assert threads == {threading.main_thread()}


@pytest.mark.parametrize(
    ("status", "kind"), [("413 Content Too Large", TooLarge), ("401 Unauthorized", Unauthenticated)]
)
async def test_an_early_error_of_the_server_is_read(
    status: str, kind: type[Exception], large_file: Path
) -> None:
    # The server closes with most of the file unread, which resets the connection under the upload.
    behave = answering(refusing(status, "too early"))
    for _ in range(5):
        with serving(behave) as url, Client(url, "t") as client, pytest.raises(kind, match="too early"):
            client.submit("tracking", large_file)
        with serving(behave) as url:
            async with AsyncClient(url, "t") as client_:
                with pytest.raises(kind, match="too early"):
                    await client_.submit("tracking", large_file)


def test_an_upload_is_never_sent_twice(large_file: Path) -> None:
    connections = []

    def count(connection: socket.socket) -> None:
        connections.append(read_headers(connection))

    with serving(count, count, count) as url, Client(url, "t") as client, pytest.raises(Unreachable):
        client.submit("tracking", large_file)
    assert len(connections) == 1


def test_a_file_that_shrinks_while_it_is_sent(large_file: Path) -> None:
    def shrink(sent: int, total: int) -> None:
        with large_file.open("r+b") as file:
            file.truncate(2 * MEBIBYTE)

    with (
        serving(Receiver()) as url,
        Client(url, "t") as client,
        pytest.raises(InvalidInput, match="became shorter"),
    ):
        client.check("tracking", large_file, shrink)


def test_a_file_that_grows_is_sent_as_it_was_announced(large_file: Path) -> None:
    receiver = Receiver()

    def grow(sent: int, total: int) -> None:
        with large_file.open("r+b") as file:
            file.truncate(65 * MEBIBYTE)

    with serving(receiver) as url, Client(url, "t") as client:
        assert client.check("tracking", large_file, grow).valid
    assert receiver.received == 64 * MEBIBYTE


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:1", "t") as client, pytest.raises(FileNotFoundError):
        client.check("tracking", tmp_path / "nothing.parquet")


async def test_a_cancelled_upload_ends(large_file: Path) -> None:
    begun, reading, ended = asyncio.Event(), threading.Event(), threading.Event()
    received: list[int] = []

    def slow(connection: socket.socket) -> None:
        read_headers(connection)
        reading.wait(20)
        while piece := connection.recv(MEBIBYTE):
            received.append(len(piece))
        ended.set()

    def progress(sent: int, total: int) -> None:
        begun.set()

    with serving(slow) as url:
        async with AsyncClient(url, "t") as client:
            upload = asyncio.create_task(client.check("tracking", large_file, progress))
            await asyncio.wait_for(begun.wait(), 10)
            upload.cancel()
            with pytest.raises(asyncio.CancelledError):
                await upload
            # The thread that sends finds no waiter and hangs up.
            reading.set()
            assert await asyncio.to_thread(ended.wait, 20)
    assert sum(received) < 32 * MEBIBYTE
