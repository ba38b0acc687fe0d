"""Rate limits by caller, and limits of concurrent work by account."""

from __future__ import annotations

import ipaddress
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from cachetools import TTLCache

from collidium.errors import TooManyRequests

#: Maximum number of addresses with a bucket.
ADDRESSES: Final = 10_000

Clock = Callable[[], float]


class TokenBuckets:
    """A token bucket for each key: ``burst`` at once, then ``per_minute``.

    A bucket is stored as the time at which it is full again (generic cell rate algorithm); full buckets are
    not stored.
    """

    def __init__(self, burst: int, per_minute: int, keys: int, clock: Clock) -> None:
        self._interval = 60 / per_minute
        self._span = burst * self._interval
        self._clock = clock
        self._full_at: TTLCache[str, float] = TTLCache(keys, self._span, timer=clock)

    def seconds_left(self, key: str) -> float:
        """Return the seconds until :meth:`take` is allowed; zero or less if it is now."""
        return self._full_at.get(key, 0.0) + self._interval - self._span - self._clock()

    def take(self, key: str) -> None:
        """Take one."""
        self._full_at[key] = max(self._full_at.get(key, 0.0), self._clock()) + self._interval


class CallerLimits:
    """Token buckets for each address and for all addresses together.

    Parameters
    ----------
    what
        The limited items, for messages: ``unknown tokens``.
    """

    def __init__(
        self, what: str, burst: int, per_minute: int, in_all_per_minute: int, clock: Clock = monotonic
    ) -> None:
        self._what = what
        self._by_address = TokenBuckets(burst, per_minute, ADDRESSES, clock)
        self._in_all = TokenBuckets(in_all_per_minute, in_all_per_minute, 1, clock)

    def take(self, address: str, *, in_all: bool = True) -> None:
        """Count one; ``in_all=False`` for the address alone. Raises TooManyRequests."""
        counted = [(self._by_address, network_of(address)), *([(self._in_all, "")] if in_all else [])]
        wait = max(buckets.seconds_left(key) for buckets, key in counted)
        if wait > 0:
            raise TooManyRequests(
                f"too many {self._what} were sent from your address or to this server; try again later",
                retry_after=math.ceil(wait),
            )
        for buckets, key in counted:
            buckets.take(key)


def network_of(address: str) -> str:
    """Return the key of an address: itself, or its /64 network for IPv6, which one host may use entirely."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed), 64), strict=False))


class InFlight:
    """Counts the concurrent uploads, evaluations and link checks of each account; one per application."""

    def __init__(self) -> None:
        self._under_way: Counter[int | str] = Counter()

    @contextmanager
    def one_more(self, account: int | str, maximum: int) -> Iterator[None]:
        """Count one while the context lasts. Raises TooManyRequests if there are ``maximum`` already."""
        if self._under_way[account] >= maximum:
            raise TooManyRequests(
                f"{maximum} submissions of this account are being scored or linked; wait for one to end",
                retry_after=1,
            )
        self._under_way[account] += 1
        try:
            yield
        finally:
            self._under_way[account] -= 1
            if not self._under_way[account]:
                del self._under_way[account]
