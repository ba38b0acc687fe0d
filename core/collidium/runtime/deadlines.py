"""Deadlines of blocking HTTP calls: httpx limits each read, so an answer that drips would never end.

For clients of httpx and of httpx2, each with the network that it has.
"""

from __future__ import annotations

import math
import ssl
import threading
from collections.abc import Iterable
from time import monotonic
from typing import Any

import httpcore


class Deadline(threading.local):
    """When calls of the current thread end, by ``time.monotonic``."""

    at: float = math.inf

    def cut(self, timeout: float | None) -> float | None:
        """The time limit of a read or a write that may take ``timeout`` seconds; None: no limit."""
        left = min(math.inf if timeout is None else timeout, self.at - monotonic())
        if left == math.inf:
            return None
        return max(left, 0.001)  # 0 would mean not to wait at all, which is another error


def keep(deadline: Deadline, client: Any) -> None:
    """Make the calls of a client end at the deadline, which it has no parameter for."""
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001
        if (pool := getattr(transport, "_pool", None)) is not None:
            pool._network_backend = _Network(pool._network_backend, deadline)  # noqa: SLF001


class _Network(httpcore.NetworkBackend):
    """Opens connections that keep a deadline."""

    def __init__(self, inner: httpcore.NetworkBackend, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        limit = self._deadline.cut(timeout)
        stream = self._inner.connect_tcp(host, port, limit, local_address, socket_options)
        return _Stream(stream, self._deadline)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.cut(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.cut(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = self._deadline.cut(timeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, limit), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
