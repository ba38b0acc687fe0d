"""Servers on loopback that respond as no Collidium server does: proxies and failing machines."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from tests.waiting import eventually

#: Answers on one accepted connection.
Behaviour = Callable[[socket.socket], None]


@contextmanager
def serving(*behaviours: Behaviour) -> Iterator[str]:
    """A server that treats its first connection by the first behaviour, and so on; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            for behave in behaviours:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    behave(connection)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def response(status: str, body: bytes, content_type: str, *headers: str) -> bytes:
    """A whole HTTP response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def read_headers(connection: socket.socket) -> bytes:
    """The request up to the empty line, and whatever came with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            break
        data += piece
    return data


def answering(answer: bytes) -> Behaviour:
    """Reads the headers and answers, whatever else is still being sent."""

    def behave(connection: socket.socket) -> None:
        read_headers(connection)
        connection.sendall(answer)

    return behave


def hanging_up(connection: socket.socket) -> None:
    """Reads the headers and closes the connection."""
    read_headers(connection)


def dripping(connection: socket.socket) -> None:
    """Answers a byte at a time and never ends, as long as a client listens."""
    read_headers(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    connection.settimeout(0.05)
    with suppress(OSError):
        while True:
            connection.sendall(b" ")
            with suppress(TimeoutError):
                connection.recv(1)
                return  # no client listens any more


def flooding(connection: socket.socket) -> None:
    """Answers as fast as it can and never ends, as long as a client listens."""
    read_headers(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    with suppress(OSError):
        while True:
            connection.sendall(b" " * 1024**2)


def relaying(backend: str, *, answer: bool = True) -> Behaviour:
    """Passes one request on to the server at ``backend``; without ``answer`` its answer is dropped."""

    def behave(connection: socket.socket) -> None:
        request = read_message(connection).replace(b"\r\nHost:", b"\r\nConnection: close\r\nHost:", 1)
        host, port = backend.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as server:
            server.sendall(request)
            said = b"".join(iter(lambda: server.recv(65536), b""))
        if answer:
            connection.sendall(said)

    return behave


def read_message(connection: socket.socket) -> bytes:
    """The headers and the body that they announce.

    A connection that closes with a body unread is reset, which may take the response with it.
    """
    data = read_headers(connection)
    headers, _, body = data.partition(b"\r\n\r\n")
    announced = re.search(rb"(?i)\r\ncontent-length: *(\d+)", headers)
    while announced and len(body) < int(announced[1]):
        body += connection.recv(65536)
    return headers + b"\r\n\r\n" + body


@contextmanager
def cutting(url: str, after: Iterable[int], ready: Callable[[], bool]) -> Iterator[tuple[str, list[int]]]:
    """A proxy that cuts its first connections after so many bytes of the client, once a server is ready.

    Gives its address, and the bytes that each connection has forwarded.
    """
    host, _, port = url.rpartition("/")[2].partition(":")
    limits, forwarded = iter(after), list[int]()

    def forward(client: socket.socket, limit: float) -> None:
        forwarded.append(0)
        at = len(forwarded) - 1
        with client, socket.create_connection((host, int(port))) as server, suppress(OSError):
            threading.Thread(target=_answer, args=(server, client), daemon=True).start()
            while forwarded[at] < limit and (piece := client.recv(1 << 16)):
                server.sendall(piece)
                forwarded[at] += len(piece)
            if forwarded[at] >= limit:
                eventually(ready)
            for end in (client, server):
                end.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            with suppress(OSError):
                while True:
                    arguments = (listener.accept()[0], next(limits, float("inf")))
                    threading.Thread(target=forward, args=arguments, daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", forwarded
        listener.shutdown(socket.SHUT_RDWR)


def _answer(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while piece := server.recv(65536):
            client.sendall(piece)
