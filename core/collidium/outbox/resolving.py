"""Finds the addresses of a host, and refuses a host that leads anywhere but to the public internet."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from collidium.daemon_threads import in_thread
from collidium.outbox.addresses import is_public

#: Looks up a host and a port; raises OSError where the name leads nowhere.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Refused(Exception):
    """This host is not told anything; the message says why, and no address of the server's own network."""


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, the system's favourites first.

    In a thread of its own: a name server that never answers must not hold up those who share a pool.
    """
    found = await in_thread(partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM), "look-up")
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def addresses_of(host: str, port: int, *, private: bool, resolve: Resolve, seconds: float) -> list[str]:
    """Where to connect for ``host``; raises Refused for a host with any address that is not allowed."""
    try:
        async with asyncio.timeout(seconds):
            addresses = list(await resolve(host, port))
    except TimeoutError:
        raise Refused("its host cannot be looked up now") from None
    except (OSError, UnicodeError):
        raise Refused("its host cannot be found") from None
    if not addresses:
        raise Refused("its host cannot be found")
    if not private and not all(map(is_public, addresses)):
        raise Refused("its host leads to an address that is not public")
    return addresses
