"""Addresses of hosts: looked up, a bounded number at once; those of the public internet; redirects elsewhere.

A look-up cannot be called off: where a name server never answers, its thread waits on for as long as the
system likes. So what is bounded is the threads, not those who wait for them.

The networks are from IANA's registries of special-purpose addresses (RFC 6890 and what came after it),
written out because ``ipaddress.is_global`` changes its mind between releases of Python.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from collidium.errors import TooManyRequests, Unavailable
from collidium.runtime.waiting import WakeSignal, in_thread

if TYPE_CHECKING:
    import httpx

#: Finds the addresses of a host and a port for an account, if one asks; raises OSError where the name leads
#: nowhere, TooManyRequests where the account has to wait for its own look-ups, Unavailable where nothing can
#: be looked up now.
Resolve = Callable[[str, int, int | None], Awaitable[Sequence[str]]]

#: Look-ups under way at once.
MAXIMUM: Final = 64
#: How long a caller waits for a look-up to start.
WAIT_SECONDS: Final = 2.0
#: A look-up that takes longer is slow: afterwards its account waits :data:`REST` times as long as it took, so
#: an account's slow look-ups take a tenth of a thread.
SLOW_SECONDS: Final = 1.0
REST: Final = 9
#: Accounts that are remembered to wait; beyond, those whose wait began first are let off.
REMEMBERED: Final = 10_000

_NOT_PUBLIC: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by the customers of one provider
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local, where clouds keep their metadata
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation, as are 198.51.100.0 and 203.0.113.0
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks of networks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
            "2001::/23",  # protocol assignments, among them Teredo, which holds an IPv4 address
            "2001:db8::/32",  # documentation, as is 3fff::
            "2002::/16",  # 6to4, which holds an IPv4 address
            "3fff::/20",
        ),
    )
)
#: All that was ever given out for the public. Loopback, private, link-local and multicast addresses lie
#: outside, and those that hold an IPv4 address (mapped, NAT64).
_PUBLIC_6: Final = ip_network("2000::/3")


@dataclass(frozen=True, slots=True)
class _LookUp:
    account_id: int | None
    found: asyncio.Task[list[str]]


class LookUps:
    """Look-ups: ``maximum`` at once, one for each account, and one for each host and port.

    Those who ask for the same host at once share the answer. Others wait, as long as ``seconds``, until there
    is room; an account whose look-up took longer than ``slow`` seconds is refused its next ones for a while.
    """

    def __init__(
        self, maximum: int = MAXIMUM, seconds: float = WAIT_SECONDS, slow: float = SLOW_SECONDS
    ) -> None:
        self._maximum = maximum
        self._seconds = seconds
        self._slow = slow
        self._under_way: dict[tuple[str, int], _LookUp] = {}
        #: Until when an account is refused, on the clock of the event loop.
        self._resting: LRUCache[int, float] = LRUCache(REMEMBERED)
        self._ended = WakeSignal()

    async def look_up(self, host: str, port: int, account_id: int | None = None) -> Sequence[str]:
        """The addresses of a host, the system's favourites first; see :data:`Resolve`."""
        if address := _literal_address(host):
            return [address]
        found = await self._started(host, port, account_id)
        # A cancelled caller leaves at once; the look-up goes on, for others too.
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


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _literal_address(host: str) -> str | None:
    """The address that a host is already, in any spelling that resolvers take (127.1): that needs none."""
    with suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(host))
    with suppress(OSError):
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host))
    return None


def is_public(address: str) -> bool:
    """Whether the address, as a resolver gives it, is one of the public internet."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address) and (parsed.scope_id is not None or parsed not in _PUBLIC_6):
        return False
    return not any(parsed in network for network in _NOT_PUBLIC)


def look_up(host: str) -> Collection[str]:
    """The addresses of a host; none where it cannot be found. Blocks."""
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return ()


def refuse_redirect(response: httpx.Response) -> None:
    """Check, as a hook of httpx, where a response redirects to. Blocks on look-ups.

    Raises
    ------
    httpx.InvalidURL
        For a redirect that leaves HTTPS, that carries a name or a password, or that leads from a host of the
        public internet to another one whose address is not public.
    """
    import httpx

    if not response.has_redirect_location:
        return
    here = response.request.url
    target = here.join(response.headers["Location"])
    if target.scheme not in ("https", here.scheme) or target.userinfo:
        raise httpx.InvalidURL("it redirects to an address that is not followed")
    if target.host != here.host and _is_public(here.host) and not _is_public(target.host):
        raise httpx.InvalidURL("it redirects to an address that is not public")


def _is_public(host: str) -> bool:
    return all(map(is_public, look_up(host)))
