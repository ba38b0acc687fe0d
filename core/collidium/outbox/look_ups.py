"""Looks up hosts with the system's resolver, a bounded number at once.

A look-up cannot be called off: where a name server never answers, its thread waits on for as long as the
system likes, whoever asked. So what is bounded is the threads, not those who wait for them.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from collidium.bell import Bell
from collidium.daemon_threads import in_thread
from collidium.errors import Unavailable

#: Finds the addresses of a host and a port for an account, if one asks; raises OSError where the name leads
#: nowhere, Unavailable where nothing can be looked up now.
Resolve = Callable[[str, int, int | None], Awaitable[Sequence[str]]]

#: Look-ups under way at once in one process.
MOST: Final = 16
#: How long somebody waits for a look-up to begin.
WAIT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class _LookUp:
    account_id: int | None
    found: asyncio.Task[list[str]]


class LookUps:
    """Look-ups of one process: ``most`` at once, one for each account, and one for each host and port.

    Those who ask for the same host at once share the answer. Others wait, as long as ``seconds``, until there
    is room.
    """

    def __init__(self, most: int = MOST, seconds: float = WAIT_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._under_way: dict[tuple[str, int], _LookUp] = {}
        self._ended = Bell()

    async def look_up(self, host: str, port: int, account_id: int | None = None) -> Sequence[str]:
        """The addresses of a host, the system's favourites first; see :data:`Resolve`."""
        if address := _spelled_out(host):
            return [address]
        found = await self._begun(host, port, account_id)
        # Whoever is cancelled leaves at once; the look-up goes on, for others too.
        return await asyncio.shield(found)

    async def _begun(self, host: str, port: int, account_id: int | None) -> asyncio.Task[list[str]]:
        try:
            async with asyncio.timeout(self._seconds):
                with self._ended.listener() as listener:
                    while True:
                        if known := self._under_way.get((host, port)):
                            return known.found
                        if self._has_room(account_id):
                            return self._begin(host, port, account_id)
                        await listener.wait(self._seconds)
        except TimeoutError:
            raise Unavailable("too many hosts are being looked up now; try again later") from None

    def _has_room(self, account_id: int | None) -> bool:
        busy = {look_up.account_id for look_up in self._under_way.values()} - {None}
        return len(self._under_way) < self._most and account_id not in busy

    def _begin(self, host: str, port: int, account_id: int | None) -> asyncio.Task[list[str]]:
        work = in_thread(partial(_addresses, host, port), "look-up")
        found = asyncio.create_task(work, name="look-up")
        self._under_way[host, port] = _LookUp(account_id, found)
        found.add_done_callback(partial(self._end, host, port))
        return found

    def _end(self, host: str, port: int, found: asyncio.Task[list[str]]) -> None:
        del self._under_way[host, port]
        self._ended.ring()
        if not found.cancelled():
            found.exception()  # taken note of, as nobody may be left who waits for it


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _spelled_out(host: str) -> str | None:
    """The address that a host is already, in any spelling that resolvers take (127.1): that needs none."""
    with suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(host))
    with suppress(OSError):
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host))
    return None


#: This process's.
look_up: Final[Resolve] = LookUps().look_up
