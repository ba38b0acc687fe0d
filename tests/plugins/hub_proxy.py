"""Stands between a client and the local hub: counts what is downloaded, and makes trouble on request."""

from __future__ import annotations

import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
from tests.waiting import eventually

CARD = "README.md"
_PIECE = 64 * 1024


@dataclass
class Asked:
    """A request as it came."""

    path: str
    byte_range: str | None
    authorization: str | None


@dataclass
class HubProxy:
    """Its attributes decide what it does, at any time."""

    behind: str
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    #: Bytes of content that were sent, by the file's name.
    sent: Counter[str] = field(default_factory=Counter)
    #: A part of a path -> how many times its content is sent with a byte changed.
    damage: Counter[str] = field(default_factory=Counter)
    #: A part of a path -> how many times the connection is cut in the middle.
    cut: Counter[str] = field(default_factory=Counter)
    #: A part of a path -> statuses with which it is answered first.
    refuse: dict[str, list[int]] = field(default_factory=dict)
    #: Headers of those answers.
    refusal: dict[str, str] = field(default_factory=dict)
    #: Whether ranges are ignored.
    without_ranges: bool = False
    #: Where contents are, if elsewhere: a redirect sends clients there.
    elsewhere: str | None = None
    #: Content stops flowing after so many bytes, until released.
    hold_after: int | None = None
    held: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    #: Requests that are being answered.
    in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bytes_sent(self) -> int:
        """Bytes of shards; the card, of some bytes, is read with them."""
        return sum(sent for name, sent in self.sent.items() if name != CARD)

    def files_asked(self) -> list[Asked]:
        asked = [asked for asked in self.asked if "/resolve/" in asked.path]
        return [each for each in asked if not each.path.endswith(CARD)]

    def let_go(self) -> None:
        """Cut the connections that are held, and hold none from now on."""
        self.released.set()
        eventually(lambda: self.in_flight == 0)
        self.hold_after = None
        self.held.clear()

    def forget(self) -> None:
        self.asked.clear()
        self.sent.clear()

    def takes(self, faults: Counter[str], path: str) -> bool:
        """Whether a fault is due for the path; then it is used up."""
        with self.lock:
            for part in faults:
                if part in path and faults[part] > 0:
                    faults[part] -= 1
                    return True
        return False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: HubProxy

    def do_GET(self) -> None:
        with self.proxy.lock:
            self.proxy.in_flight += 1
        try:
            self._serve()
        finally:
            with self.proxy.lock:
                self.proxy.in_flight -= 1

    do_HEAD = do_GET  # noqa: N815 -- as the server looks for it

    def _serve(self) -> None:
        proxy = self.proxy
        proxy.asked.append(Asked(self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        for part, statuses in proxy.refuse.items():
            if part in self.path and statuses:
                return self._answer(statuses.pop(0), proxy.refusal)
        if proxy.elsewhere and "/resolve/" in self.path:
            return self._answer(302, {"Location": proxy.elsewhere + self.path})
        wanted = {name: self.headers[name] for name in ("Authorization", "Range") if self.headers.get(name)}
        if proxy.without_ranges:
            wanted.pop("Range", None)
        with httpx.Client(trust_env=False, timeout=30) as client:
            # As a proxy it is asked for whole addresses.
            path = self.path.partition("://")[2].partition("/")[2] if "://" in self.path else self.path[1:]
            address = f"{proxy.behind.removesuffix('/hub')}/{path}"
            with client.stream(self.command, address, headers=wanted) as response:
                self._pass_on(response)
        return None

    def _answer(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def _pass_on(self, response: httpx.Response) -> None:
        proxy = self.proxy
        self.send_response(response.status_code)
        for name, value in response.headers.items():
            if name not in {"date", "server", "connection", "transfer-encoding"}:
                self.send_header(name, value)
        if "content-length" not in response.headers:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        is_content = "/resolve/" in self.path and self.command == "GET"
        damaged = is_content and proxy.takes(proxy.damage, self.path)
        cut = is_content and proxy.takes(proxy.cut, self.path)
        for piece in response.iter_raw(_PIECE):
            if damaged:
                piece, damaged = bytes([piece[0] ^ 1]) + piece[1:], False
            if cut:
                piece = piece[: len(piece) // 2]
            if is_content and not self._count(len(piece)):
                return
            self.wfile.write(piece)
            if cut:
                self.close_connection = True
                return

    def _count(self, count: int) -> bool:
        """Count what is about to be sent; False when it is not to be sent any more."""
        proxy = self.proxy
        with proxy.lock:
            full = proxy.hold_after is not None and (
                proxy.held.is_set() or proxy.bytes_sent + count > proxy.hold_after
            )
            if full:
                proxy.held.set()
            else:
                proxy.sent[self.path.rpartition("/")[2]] += count
        if full:
            proxy.released.wait(60)
            self.close_connection = True
        return not full

    def log_message(self, *arguments: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *arguments: Any) -> None:
        """Clients that are killed hang up; that is what they are for."""


@contextmanager
def hub_proxy(behind: str, tls: ssl.SSLContext | None = None) -> Iterator[HubProxy]:
    """A proxy before the hub at ``behind`` while the context lasts; with ``tls`` it speaks https."""
    proxy = HubProxy(behind)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        proxy.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/hub"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.released.set()
            server.shutdown()
            thread.join()
