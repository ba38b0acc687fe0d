"""The socket that a server listens on, bound before anything else so that its port is known."""

from __future__ import annotations

import socket

from collidium.errors import ConfigurationError

#: Connections that may wait to be accepted.
BACKLOG = 1024


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
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"cannot listen on port {port} of {host}: {reason} ({advice})") from error
    return listener
