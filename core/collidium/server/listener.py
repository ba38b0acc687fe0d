"""The sockets that a server listens on, bound before anything else so that their ports are known."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from collidium.errors import ConfigurationError
from collidium.settings import Settings

#: Connections that may wait to be accepted.
BACKLOG = 1024
LAST_PORT = 65535


def listeners_of(settings: Settings) -> Iterator[socket.socket]:
    """The server's socket, and the one at whose root the local hub is, unless there is none."""
    yield listen(settings.host, settings.port)
    if settings.hub_port == 0 or settings.hub_url:
        return
    port = settings.hub_port or (settings.port and settings.port + 1)
    advice = "the hub's; choose another with PLATFORM_HUB_PORT, or 0 for none"
    if port > LAST_PORT:  # the resolver would take the remainder
        raise ConfigurationError(f"there is no port {port} ({advice})")
    yield listen(settings.host, port, advice)


def listen(host: str, port: int, advice: str = "choose another with --port, or 0 for any") -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises ConfigurationError when it cannot be had."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}: {error.strerror or error}") from error
    try:
        # A restart need not wait until the last server's connections are forgotten.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"cannot listen on port {port} of {host}: {error.strerror or error} ({advice})"
        ) from error
    return listener
