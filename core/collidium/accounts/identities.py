"""Who stands behind a token, for as long as the identity provider's answer holds.

Unknown tokens are limited, since each costs a call of the provider; known ones are not, and stay valid for a
while when the provider is unavailable. Whether an account is banned is for the database to say, each time.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from traceback import extract_tb
from typing import TYPE_CHECKING, Final

from cachetools import TTLCache

from collidium.contracts.identity import Identity, IdentityProvider, IdentityUnavailable
from collidium.errors import TooManyRequests
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Tokens and addresses remembered; valid tokens are apart, so that a flood drives none out.
KNOWN_TOKENS: Final = 10_000
REJECTED_TOKENS: Final = 1_000
ADDRESSES: Final = 10_000
#: How long a rejection holds: the token may have been made a moment ago. After a failure of the provider, it
#: is not asked about the same known token for at least as long.
REJECTED_SECONDS: Final = 5.0

Clock = Callable[[], float]


@dataclass(slots=True)
class _Known:
    identity: Identity
    #: Until then the provider is not asked.
    fresh_until: float


class TokenBuckets:
    """A token bucket for each key: ``burst`` at once, then ``per_minute``.

    A bucket is the time at which it is full again (generic cell rate algorithm); a full one has no entry.
    """

    def __init__(self, burst: int, per_minute: int, keys: int, clock: Clock) -> None:
        self._interval = 60 / per_minute
        self._span = burst * self._interval
        self._clock = clock
        self._full_at: TTLCache[str, float] = TTLCache(keys, self._span, timer=clock)

    def seconds_left(self, key: str) -> float:
        """Seconds until :meth:`take` is allowed; zero or less where it is now."""
        return self._full_at.get(key, 0.0) + self._interval - self._span - self._clock()

    def take(self, key: str) -> None:
        """Take one."""
        self._full_at[key] = max(self._full_at.get(key, 0.0), self._clock()) + self._interval


class Identities:
    """Identifies the callers of one process with an identity provider.

    Parameters
    ----------
    provider
        Asked about tokens; closed with this.
    settings
        How long answers hold, and how many unknown tokens are asked about.
    clock
        Returns seconds.
    """

    def __init__(self, provider: IdentityProvider, settings: Settings, clock: Clock = monotonic) -> None:
        self._provider = provider
        self._clock = clock
        self._fresh = settings.identity_cache_seconds
        kept = max(self._fresh, settings.identity_grace)
        self._known: TTLCache[str, _Known] = TTLCache(KNOWN_TOKENS, kept, timer=clock)
        rejected = min(self._fresh, REJECTED_SECONDS)
        self._rejected: TTLCache[str, bool] = TTLCache(REJECTED_TOKENS, rejected, timer=clock)
        self._asking: SharedCalls[str, Identity | None] = SharedCalls()
        in_all = settings.unknown_tokens_per_minute_in_all
        self._by_address = TokenBuckets(
            settings.unknown_tokens_burst, settings.unknown_tokens_per_minute, ADDRESSES, clock
        )
        self._in_all = TokenBuckets(in_all, in_all, 1, clock)

    async def identify(self, token: str, address: str) -> Identity | None:
        """Return the token's owner, or None when it is not valid.

        Parameters
        ----------
        token
            As the caller sent it.
        address
            The caller's IP address.

        Raises
        ------
        IdentityUnavailable
            When the provider cannot tell now, and the token has not been valid of late.
        TooManyRequests
            When the address, or all of them, sent too many unknown tokens.
        """
        key = hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
        known = self._known.get(key)
        if known and self._clock() < known.fresh_until:
            return known.identity
        if key in self._rejected:
            return None
        if not known and key not in self._asking:
            self._limit(network_of(address))
        try:
            return await self._asking.run(key, lambda: self._ask(key, token))
        except IdentityUnavailable:
            if not known:
                raise
            known.fresh_until = self._clock() + max(self._fresh, REJECTED_SECONDS)
            return known.identity

    async def sees_model(self, token: str, model_repo: str) -> bool:
        """Ask the provider whether ``token`` sees a model repository; raises what the provider does."""
        return await self._provider.sees_model(token, model_repo)

    async def close(self) -> None:
        """Close the provider. Idempotent."""
        await self._asking.close()
        await self._provider.close()

    def _limit(self, network: str) -> None:
        wait = max(self._by_address.seconds_left(network), self._in_all.seconds_left(""))
        if wait > 0:
            raise TooManyRequests(
                "too many unknown tokens were sent from your address or to this server; try again later",
                retry_after=math.ceil(wait),
            )
        self._by_address.take(network)
        self._in_all.take("")

    async def _ask(self, key: str, token: str) -> Identity | None:
        identity = await self._ask_provider(token)
        if identity is None:
            self._known.pop(key, None)
            self._rejected[key] = True
        else:
            self._known[key] = _Known(identity, self._clock() + self._fresh)
        return identity

    async def _ask_provider(self, token: str) -> Identity | None:
        """Whatever the provider fails with means that it cannot tell now."""
        provider = self._provider
        try:
            identity = await provider.identify(token)
        except IdentityUnavailable:
            raise
        except Exception as error:
            # A provider may be a third party's, and its message may hold the token: log kind and place.
            place = extract_tb(error.__traceback__)[-1]
            raise IdentityUnavailable(
                f"{provider.name} failed with {type(error).__name__} at {place.filename}:{place.lineno}"
            ) from None
        if identity is None or isinstance(identity, Identity):
            return identity
        raise IdentityUnavailable(f"{provider.name} answered with {type(identity).__name__}, no Identity")


def network_of(address: str) -> str:
    """The network that an address counts for: itself, or the /64 of IPv6, all of which one host may use."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed), 64), strict=False))
