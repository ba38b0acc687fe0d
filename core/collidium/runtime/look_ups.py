"""Look-ups of host names in threads, with limits on their number.

A look-up cannot be cancelled: if a name server does not respond, its thread waits for as long as the system
waits. So the number of threads is limited, while callers stop waiting at any time.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Final

from cachetools import LRUCache

from collidium.errors import TooManyRequests, Unavailable
from collidium.runtime.waiting import WakeSignal, in_thread

#: Returns the addresses of a host and a port, on behalf of an account or of none. Raises OSError if there are
#: none, TooManyRequests if the account has to wait for its own look-ups, and Unavailable if too many are
#: running.
Resolve = Callable[[str, int, int | None], Awaitable[Sequence[str]]]

#: Maximum number of concurrent look-ups.
MAXIMUM: Final = 64
#: How long a caller waits for its look-up to start.
WAIT_SECONDS: Final = 2.0
#: After a look-up that takes longer than this, its account must wait :data:`REST` times as long as it took,
#: so that the slow look-ups of an account use a tenth of a thread.
SLOW_SECONDS: Final = 1.0
REST: Final = 9
#: Maximum number of accounts that must wait; beyond it, those that were used least recently need not.
REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class _LookUp:
    account_id: int | None
    found: asyncio.Task[list[str]]


class LookUps:
    """Looks up hosts: at most ``maximum`` at once, one for each account, and one for each host and port.

    Concurrent callers for the same host share a look-up. Others wait up to ``seconds`` for theirs to start.
    An account whose look-up took longer than ``slow`` seconds may start no other for some time.
    """

    def __init__(
        self, maximum: int = MAXIMUM, seconds: float = WAIT_SECONDS, slow: float = SLOW_SECONDS
    ) -> None:
        self._maximum = maximum
        self._seconds = seconds
        self._slow = slow
        self._under_way: dict[tuple[str, int], _LookUp] = {}
        #: Until when an account may start no look-up, on the clock of the event loop.
        self._resting: LRUCache[int, float] = LRUCache(REMEMBERED)
        self._ended = WakeSignal()

    async def look_up(self, host: str, port: int, account_id: int | None = None) -> Sequence[str]:
        """Return the addresses of a host in the order of the system; see :data:`Resolve`."""
        if address := _literal_address(host):
            return [address]
        found = await self._started(host, port, account_id)
        # If the caller is cancelled, the look-up goes on for others.
        return await asyncio.shield(found)

    async def _started(self, host: str, port: int, account_id: int | None) -> asyncio.Task[list[str]]:
        try:
            async with asyncio.timeout(self._seconds):
                with self._ended.waiter() as waiter:
                    while True:
                        if known := self._under_way.get((host, port)):
                            return known.found
                        self._require_rested(account_id)
                        if len(self._under_way) < self._maximum and not self._is_busy(account_id):
                            return self._begin(host, port, account_id)
                        await waiter.wait(self._seconds)
        except TimeoutError:
            if self._is_busy(account_id):
                detail = "the last host that you gave is still being looked up; try again later"
                raise TooManyRequests(detail, retry_after=10) from None
            raise Unavailable("too many hosts are being looked up now; try again later") from None

    def _is_busy(self, account_id: int | None) -> bool:
        return account_id is not None and any(
            look_up.account_id == account_id for look_up in self._under_way.values()
        )

    def _require_rested(self, account_id: int | None) -> None:
        left = self._resting.get(account_id, 0.0) - asyncio.get_running_loop().time() if account_id else 0.0
        if left > 0:
            seconds = ceil(left)
            detail = f"the name servers of the last host that you gave were slow; try again in {seconds} s"
            raise TooManyRequests(detail, retry_after=seconds)

    def _begin(self, host: str, port: int, account_id: int | None) -> asyncio.Task[list[str]]:
        work = in_thread(partial(_addresses, host, port), "look-up")
        found = asyncio.create_task(work, name="look-up")
        self._under_way[host, port] = _LookUp(account_id, found)
        found.add_done_callback(partial(self._end, host, port, asyncio.get_running_loop().time()))
        return found

    def _end(self, host: str, port: int, started: float, found: asyncio.Task[list[str]]) -> None:
        account_id = self._under_way.pop((host, port)).account_id
        now = asyncio.get_running_loop().time()
        if account_id is not None and (took := now - started) > self._slow:
            self._resting[account_id] = now + REST * took
        self._ended.notify()
        if not found.cancelled():
            found.exception()  # retrieved, as no caller may be left


def _addresses(host: str, port: int | None) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _literal_address(host: str) -> str | None:
    """Return the address of a host that is one, in any notation that resolvers accept (127.1)."""
    with suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(host))
    with suppress(OSError):
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host))
    return None


def look_up(host: str) -> Sequence[str]:
    """Return the addresses of a host, none if it cannot be found. Blocks."""
    try:
        return _addresses(host, None)
    except (OSError, UnicodeError):
        return ()
