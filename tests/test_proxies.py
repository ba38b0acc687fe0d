"""What an attacker sends through the proxies of ``deploy/proxy`` to a server that trusts one of them."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from tests.needs import Needs
from tests.ports import free_ports
from tests.proxies import caddy, nginx

from collidium.testing.server import ServerProcess

BURST = 5
HOST = b"Host: collidium.example.org\r\n"
#: Each proxy answers this itself, so what the server sees of it was not seen by the proxy.
INSIDE = b"GET /metrics?smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /v1/simulate HTTP/1.1\r\n" + HOST
CHUNKED = b"Transfer-Encoding: chunked\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    env = {
        "PLATFORM_TRUSTED_PROXIES": "1",
        "PLATFORM_UNKNOWN_TOKENS_BURST": str(BURST),
        "PLATFORM_UNKNOWN_TOKENS_PER_MINUTE": "1",
    }
    with ServerProcess(tmp_path_factory.mktemp("server"), env=env) as server:
        yield server


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def port(
    request: pytest.FixtureRequest,
    needs: Needs,
    server: ServerProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[int]:
    """Where the proxy takes requests."""
    needs(request.param)
    (port,) = free_ports(1)
    behind = int(server.base_url.rpartition(":")[2])
    directory = tmp_path_factory.mktemp("proxy") / request.param
    with ExitStack() as stack:
        if request.param == "nginx":
            stack.enter_context(nginx(directory, port, [behind, behind]))
        else:
            stack.enter_context(caddy(directory, port, [behind]))
        yield port


def status_of(port: int, sent: bytes) -> int:
    """The status of the first answer; 0 where the connection is closed without one."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection, suppress(ConnectionError):
        connection.sendall(sent)
        while b"\r\n" not in received and (piece := connection.recv(65536)):
            received += piece
    found = re.match(rb"HTTP/1\.[01] (\d{3})", received)
    return int(found[1]) if found else 0


def was_never_asked_for_metrics(server: ServerProcess) -> bool:
    return re.search(r"GET /+metrics ", server.log()) is None


def assert_in_step(port: int, server: ServerProcess) -> None:
    """The next requests get answers of their own, and nothing got past the proxy unseen."""
    for path, expected in (("/healthz", 200), ("/v1/nothing", 404), ("/healthz", 200), ("/v1/me", 401)):
        assert (
            httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=60).status_code == expected
        )
    assert was_never_asked_for_metrics(server)


@pytest.mark.parametrize(
    "sent",
    [
        POST + CHUNKED + b"Content-Length: %d\r\n\r\n0\r\n\r\n" % (5 + len(INSIDE)) + INSIDE,
        POST + CHUNKED + b"Content-Length: 4\r\n\r\n%x\r\n" % len(INSIDE) + INSIDE + b"\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + INSIDE,
        POST + CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" + INSIDE,
        POST + b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + INSIDE,
        POST + b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(INSIDE) + INSIDE,
        POST + b"Content-Length: +0\r\n\r\n" + INSIDE,
        POST + CHUNKED + b"\r\n2;\nxx\r\n10\r\n1f\r\nAAAABBBBCCCC\r\n0\r\n\r\n" + INSIDE,
        POST + CHUNKED + b"\r\nfffffffffffffffff0\r\nabc\r\n0\r\n\r\n" + INSIDE,
        POST + b"X: y\n" + CHUNKED.replace(b"\r", b"") + b"\r\n0\r\n\r\n" + INSIDE,
        b"GET /v1/me HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" + INSIDE,
        b"GET /v1/me HTTP/1.1\r\n" + HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + INSIDE,
        b"GET /v1/me\r\n\r\n" + INSIDE,
        b"GET http://elsewhere.example/v1/me HTTP/1.1\r\n" + HOST + b"\r\n" + INSIDE,
    ],
)
def test_no_request_is_smuggled_past_the_proxy(port: int, server: ServerProcess, sent: bytes) -> None:
    assert status_of(port, sent) in {0, 400, 401, 404, 501, 502}
    assert_in_step(port, server)


@pytest.mark.parametrize(
    "path",
    [
        *("/metrics", "//metrics", "/./metrics", "/x/../metrics", "/x/%2e%2e/metrics", "/%6detrics"),
        *("/%2e/metrics", "/metrics?x", "/v1//../metrics", "/x/..%2fmetrics", "///metrics", "/metrics/"),
    ],
)
def test_metrics_stay_inside_whatever_the_path(port: int, server: ServerProcess, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\n".encode() + HOST + b"Connection: close\r\n\r\n"
    assert status_of(port, head) in {400, 404}
    assert was_never_asked_for_metrics(server)


@pytest.mark.parametrize(
    "path",
    [
        *("/admin/overview", "//admin/overview", "/%61dmin/overview", "/v1/../admin/overview"),
        *("/v1/..%2fadmin/overview", "/ADMIN/overview", "/admin;/overview", "/admin/overview%00"),
        *("/web/../admin/overview", "/hub/..%2f..%2fadmin/overview", "/admin/./overview", "/admin\\overview"),
    ],
)
def test_no_path_opens_what_operators_have(port: int, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\n".encode() + HOST + b"X-Admin-Token: guess\r\nConnection: close\r\n\r\n"
    assert status_of(port, head) in {400, 401, 404}


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v1/me HTTP/1.1\r\n" + HOST + b"X-Big: " + b"a" * 2_000_000 + b"\r\n\r\n",
        b"GET /v1/me HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 200_000 + b"\r\n",
        b"GET /" + b"a" * 2_000_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /v1/me HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /v1/me HTTP/1.1\r\n\r\n",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
)
def test_headers_that_are_too_large_or_wrong_are_refused(
    port: int, server: ServerProcess, sent: bytes
) -> None:
    # A proxy may close the connection before all was sent.
    assert status_of(port, sent) in {0, 400, 404, 405, 414, 431}
    assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False, timeout=60).status_code == 200


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X_Forwarded_For", "Connection"]
)
def test_no_header_forges_the_address_of_a_caller(port: int, header: str) -> None:
    """All share the limit of the address from which they come."""
    statuses = []
    for number in range(BURST + 1):
        address = f"192.0.2.{number}"
        value = {"Forwarded": f"for={address}", "Connection": "X-Forwarded-For"}.get(header, address)
        headers = {"X-Forwarded-For": address, header: value, "Authorization": f"Bearer {header}-{number}"}
        answer = httpx.get(f"http://127.0.0.1:{port}/v1/me", headers=headers, trust_env=False, timeout=60)
        statuses.append(answer.status_code)
    assert statuses[-1] == 429
