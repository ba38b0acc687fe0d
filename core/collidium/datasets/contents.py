"""Receives contents of files into a buffer that is used again and again.

httpx makes new memory for each piece, which costs half as much again as receiving, hashing and writing
together, and a download from a hub that is near is bound by just that (``perf/datasets.py``). So contents
come by the standard library's client; proxies and certificates are those of httpx.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import SplitResult, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from collidium.http_client import past_proxies

if TYPE_CHECKING:
    import ssl

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5


class Broken(Exception):
    """The connection could not be made, or ended too early; ``reached`` tells which."""

    def __init__(self, error: Exception, *, reached: bool) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.reached = reached


class Content:
    """An answer whose body is still to be read."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = response.headers

    def read_into(self, buffer: memoryview) -> int:
        """Fill the buffer from its start; how much came, 0 at the end. Raises Broken."""
        try:
            return self._response.readinto(buffer)
        except (OSError, HTTPException) as error:
            raise Broken(error, reached=True) from error


class Connections:
    """Connections that one thread keeps: one to each host, closed in the end. A context manager."""

    def __init__(self, connect_seconds: float, read_seconds: float) -> None:
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._kept: dict[tuple[str, str, int], HTTPConnection] = {}
        self._certificates: ssl.SSLContext | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._kept:
            self._kept.popitem()[1].close()

    @contextmanager
    def open(self, url: str, headers: Mapping[str, str]) -> Iterator[Content]:
        """The answer to GET, redirects followed; to another host they are followed without the token.

        An answer that is not read to its end costs its connection. Raises Broken.
        """
        headers = dict(headers)
        for _ in range(_MOST_REDIRECTS + 1):
            parts = urlsplit(url)
            response = self._ask(parts, headers)
            target = response.headers.get("Location")
            try:
                if response.status not in _REDIRECTS or target is None:
                    yield Content(response)
                    return
            finally:
                if not response.isclosed():
                    self._kept.pop(_origin(parts)).close()
            url = urljoin(url, target)
            if _origin(urlsplit(url)) != _origin(parts):
                headers.pop("Authorization", None)
        raise Broken(HTTPException("too many redirects"), reached=True)

    def _ask(self, parts: SplitResult, headers: Mapping[str, str]) -> HTTPResponse:
        kept = self._kept.pop(_origin(parts), None)
        if kept is not None:
            try:
                return self._answer(kept, parts, headers)
            except (OSError, HTTPException):
                # The other side closes connections that nobody has used for a while.
                kept.close()
        made = self._connect(parts)
        try:
            return self._answer(made, parts, headers)
        except (OSError, HTTPException) as error:
            made.close()
            raise Broken(error, reached=True) from error

    def _answer(
        self, connection: HTTPConnection, parts: SplitResult, headers: Mapping[str, str]
    ) -> HTTPResponse:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        proxy = _proxy(parts) if parts.scheme == "http" else None
        if proxy is not None:
            target, headers = parts.geturl(), {**headers, **_credentials(proxy)}
        connection.request("GET", target, headers=dict(headers))
        response = connection.getresponse()
        self._kept[_origin(parts)] = connection
        return response

    def _connect(self, parts: SplitResult) -> HTTPConnection:
        made = self._new(parts)
        try:
            made.connect()
        except (OSError, HTTPException) as error:
            made.close()
            raise Broken(error, reached=False) from error
        made.sock.settimeout(self._read_seconds)
        return made

    def _new(self, parts: SplitResult) -> HTTPConnection:
        scheme, host, port = _origin(parts)
        proxy = _proxy(parts)
        if scheme not in {"http", "https"}:
            raise Broken(HTTPException(f"redirected to {scheme}"), reached=True)
        at = (host, port) if proxy is None else _origin(proxy)[1:]
        if scheme == "http":
            return HTTPConnection(*at, timeout=self._connect_seconds)
        made = HTTPSConnection(*at, timeout=self._connect_seconds, context=self._tls())
        if proxy is not None:
            made.set_tunnel(host, port, _credentials(proxy))
        return made

    def _tls(self) -> ssl.SSLContext:
        if self._certificates is None:
            import httpx

            self._certificates = httpx.create_ssl_context()
        return self._certificates


def _origin(parts: SplitResult) -> tuple[str, str, int]:
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _proxy(parts: SplitResult) -> SplitResult | None:
    """The proxy of the environment for an address; never one for this very machine."""
    host = parts.hostname or ""
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    own = f"all://[{host}]" if ":" in host else f"all://{host}"
    if address is None or own in past_proxies() or proxy_bypass(host):
        return None
    return urlsplit(address if "://" in address else f"http://{address}")


def _credentials(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
