"""Ports for addresses that have to be known before they are listened on.

They are below the range that Linux gives away: a free port was taken before its server listened, once in
some 7,000 tests.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack, suppress
from typing import Final

#: Below the range of ephemeral ports: a port of these stays free until a server listens on it.
NOT_GIVEN_AWAY: Final = range(10_000, 32_000)


def free_ports(number: int) -> list[int]:
    """Return that many different ports of loopback without a listener."""
    with ExitStack() as held:
        ports: set[int] = set()
        while len(ports) < number:
            port = secrets.choice(NOT_GIVEN_AWAY)
            with suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                ports.add(port)
        return list(ports)
