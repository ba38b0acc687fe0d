"""Connections of a real server: slow readers, missing bodies, no HTTP/2 without TLS, proxies."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import selectors
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

import httpx
import pytest
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart
from tests.hub import token_on
from tests.needs import Needs
from tests.waiting import eventually

from collidium.api.context import caller_address
from collidium.server import protocol
from collidium.server.worker import BACKLOG
from collidium.testing.server import ServerProcess

#: More than the kernel keeps for a connection.
FILE = os.urandom(1024) * 9 * 1024
PATH = "/ada/large/resolve/main/large.bin"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that is patient for a second, whose hub has a large file."""
    env = {"PLATFORM_BODY_TIMEOUT_SECONDS": "1"}
    with ServerProcess(tmp_path_factory.mktemp("server"), env=env) as server:
        headers = {"Authorization": f"Bearer {token_on(server.data_dir / 'hub', 'ada')}"}
        change = {"path": "large.bin", "content": base64.b64encode(FILE).decode(), "encoding": "base64"}
        lines = ({"key": "header", "value": {"summary": "add"}}, {"key": "file", "value": change})
        with httpx.Client(base_url=server.hub_url, headers=headers, trust_env=False) as client:
            client.post("/api/repos/create", json={"name": "large"}).raise_for_status()
            commit = "\n".join(json.dumps(line) for line in lines)
            client.post("/api/models/ada/large/commit/main", content=commit).raise_for_status()
        yield server


def connected(url: str, sent: bytes) -> socket.socket:
    """A connection on which that was sent; its own buffer is small."""
    address = urlsplit(url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    client.settimeout(20)
    client.connect((address.hostname, address.port))
    client.sendall(sent)
    return client


def answered(url: str, sent: bytes) -> tuple[bytes, bytes]:
    """Head and body of what the server sends until it closes the connection."""
    with connected(url, sent) as client:
        head, _, body = b"".join(iter(lambda: client.recv(65536), b"")).partition(b"\r\n\r\n")
    return head, body


def is_refused(client: socket.socket) -> bool:
    """Whether the server no longer takes what is sent to it."""
    try:
        client.sendall(b"\r\n")
    except ConnectionError:
        return True
    return False


# -- answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mount", ["server", "hub"])
def test_connections_of_clients_that_do_not_read_are_closed(server: ServerProcess, mount: str) -> None:
    url, path = (server.hub_url, PATH) if mount == "hub" else (server.base_url, f"/hub{PATH}")
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    with connected(url, request) as idle, connected(url, request) as slow:
        received = bytearray()
        until = monotonic() + 3
        while piece := slow.recv(64 * 1024):
            received += piece
            if monotonic() < until:
                sleep(0.03)  # the slowness that is tested
        assert received.endswith(FILE)
        assert monotonic() > until
        # By now the other one was given up. The client learns it when it sends something.
        eventually(lambda: is_refused(idle))
    assert "Traceback" not in server.log()


# -- requests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "length", ["Content-Length: 10", "Content-Length: 9000000", "Transfer-Encoding: chunked"]
)
def test_a_body_that_never_comes_is_not_waited_for(server: ServerProcess, length: str) -> None:
    head, body = answered(server.base_url, f"GET /healthz HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode())
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["status"] == "ok"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: zstd\r\n\r\n", 501),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 505),
    ],
)
def test_an_unparsable_request_gets_a_response(server: ServerProcess, sent: bytes, status: int) -> None:
    head, body = answered(server.base_url, sent)
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"content-type: application/problem+json" in head.lower()
    document = json.loads(body)
    assert document["status"] == status
    assert document["detail"]
    assert "Traceback" not in server.log()


H2C = b"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
WEBSOCKET = (
    b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.mark.parametrize("upgrade", [H2C, WEBSOCKET], ids=["h2c", "websocket"])
@pytest.mark.parametrize(("path", "status"), [(b"/healthz", b"200"), (b"/nothing", b"404")])
def test_no_other_protocol_is_spoken(
    server: ServerProcess, upgrade: bytes, path: bytes, status: bytes
) -> None:
    head, _ = answered(server.base_url, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert "Traceback" not in server.log()


def test_connections_end_with_their_clients(needs: Needs, server: ServerProcess) -> None:
    """At once, not when their idle time is up: each holds a file and memory."""
    needs("process files")
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

    def open_files() -> int:
        return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))

    before = open_files()
    with ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(connected(server.base_url, request))
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert open_files() >= before + 15
    eventually(lambda: open_files() < before + 5, 20)


async def test_idle_connections_end_and_busy_ones_do_not() -> None:
    app = Quart(__name__)

    @app.get("/")
    async def slow() -> str:
        await asyncio.sleep(0.3)  # longer than a connection may idle
        return "done"

    protocol.install()
    stop = asyncio.Event()
    config = Config()
    config.keep_alive_timeout = 0.1
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    config.bind = [f"fd://{listener.detach()}"]
    serving = asyncio.create_task(serve(app, config, shutdown_trigger=stop.wait))
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(20):
        assert (await reader.read()).endswith(b"done")  # up to the end of the connection
    writer.close()
    stop.set()
    await serving


def test_connections_wait_until_a_busy_server_takes_them(server: ServerProcess) -> None:
    """As many as the backlog; on this machine, at most as the system allows."""
    allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())
    address = urlsplit(server.base_url)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with ExitStack() as stack:
            waiting = stack.enter_context(closing(selectors.DefaultSelector()))
            count = min(BACKLOG, allowed) // 2
            for _ in range(count):
                client = stack.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex((address.hostname, address.port))
                waiting.register(client, selectors.EVENT_WRITE)
            eventually(lambda: len(waiting.select(0)) == count)
    finally:
        os.kill(server.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("passed", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:49152", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:49152", "2001:db8::1"),
        ("spoofed, 192.0.2.1:1", "192.0.2.1"),
        ("unknown", "198.51.100.1"),
        ("", "198.51.100.1"),
    ],
)
async def test_caller_address_of_a_proxy(passed: str, address: str) -> None:
    headers = {"Remote-Addr": "198.51.100.1", "X-Forwarded-For": passed}
    async with Quart("app").test_request_context("/", headers=headers):
        assert caller_address(1) == address
