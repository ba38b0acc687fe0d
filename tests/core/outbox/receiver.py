"""A receiver of webhooks: a real HTTPS server on loopback that keeps what it is sent."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from threading import Event, Thread
from typing import Any

import trustme


@dataclass(frozen=True)
class Received:
    """One POST."""

    path: str
    #: Names in lower case.
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What arrived, and how it is answered: with ``status``, once ``open`` is set.

    Where there is a ``flood``, that is sent for an answer until the other side hangs up.
    """

    host: str
    port: int
    received: list[Received] = field(default_factory=list)
    status: Callable[[int], int] = lambda _: 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    flood: bytes = b""
    open: Event = field(default_factory=Event)

    def url(self, path: str = "/hook") -> str:
        return f"https://{self.host}:{self.port}{path}"

    @property
    def ids(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self.received]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    context: ssl.SSLContext
    receiver: Receiver

    def finish_request(self, request: Any, client_address: Any) -> None:
        # In the connection's own thread: a handshake that fails must not end the server.
        with self.context.wrap_socket(request, server_side=True) as tls:
            super().finish_request(tls, client_address)

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        receiver.received.append(Received(self.path, headers, body))
        number = len(receiver.received)
        receiver.open.wait(30)
        while receiver.flood:
            self.wfile.write(receiver.flood)
        self.send_response(receiver.status(number))
        for name, value in receiver.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(receiver.body)))
        self.end_headers()
        self.wfile.write(receiver.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- its name there
        """Nothing is logged."""


@contextmanager
def receiving(
    authority: trustme.CA, host: str, address: str = "127.0.0.1", port: int = 0
) -> Iterator[Receiver]:
    """A receiver at ``address`` with a certificate for ``host``."""
    server = _Server((address, port), _Handler)
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(server.context)
    receiver = server.receiver = Receiver(host, server.server_address[1])
    receiver.open.set()
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.open.set()
        server.shutdown()
        thread.join()
        server.server_close()


def notifying(authority: trustme.CA, directory: Path) -> dict[str, str]:
    """Variables of a server that notifies receivers on loopback soon, and trusts the authority."""
    trusted = directory / "authority.pem"
    authority.cert_pem.write_to_path(str(trusted))
    return {
        "PLATFORM_WEBHOOK_PRIVATE_ADDRESSES": "true",
        "PLATFORM_MOCK_SECONDS": "0.1",
        "PLATFORM_POLL_SECONDS": "0.1",
        "SSL_CERT_FILE": str(trusted),
    }
