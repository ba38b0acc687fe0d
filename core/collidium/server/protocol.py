"""Hypercorn: responses to what is no HTTP/1.1 have a body, and listeners pause without file descriptors."""

from __future__ import annotations

import socket
from asyncio.constants import ACCEPT_RETRY_DELAY
from time import monotonic
from typing import Any, Final

from hypercorn.config import Config, Sockets

from collidium.api import problems
from collidium.overrides import hypercorn
from collidium.runtime import descriptors


class Listener(socket.socket):
    """A socket that lets asyncio pause after a connection for which there was no file descriptor.

    asyncio asks for as many connections as may wait, and schedules an attempt after each failure: they would
    take the whole core.
    """

    _paused_until = 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        if monotonic() < self._paused_until:
            raise BlockingIOError
        try:
            return super().accept()
        except OSError as error:
            if descriptors.are_used_up(error):
                self._paused_until = monotonic() + ACCEPT_RETRY_DELAY / 2
            raise


class ListeningConfig(Config):
    """A configuration whose listeners are :class:`Listener`."""

    def create_sockets(self) -> Sockets:
        made = super().create_sockets()
        made.insecure_sockets = [Listener(fileno=each.detach()) for each in made.insecure_sockets]
        return made


_DETAILS: Final = {
    400: "the request is not HTTP/1.1",
    431: "the headers of the request are too long",
    501: "the request's Transfer-Encoding is not supported; send chunked or a Content-Length",
    505: "send HTTP/1.1; HTTP/2 is not supported",
}


def install() -> None:
    """Make Hypercorn use our connections and protocol in this process. Idempotent."""
    hypercorn.install(_document)


def _document(status: int) -> tuple[str, bytes]:
    return problems.MEDIA_TYPE, problems.document(status, _DETAILS.get(status, "the request cannot be read"))
