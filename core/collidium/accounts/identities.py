"""Cached identification of callers by their tokens.

Unknown tokens are rate-limited because each costs a call of the identity provider. Known tokens are not, and
stay valid for a while if the provider is unavailable.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from time import monotonic
from traceback import extract_tb
from typing import TYPE_CHECKING, Final

from cachetools import TTLCache

from collidium.contracts.identity import SSO_SUFFIX, Identity, IdentityProvider, IdentityUnavailable
from collidium.errors import Forbidden, TooManyRequests
from collidium.runtime import metrics
from collidium.runtime.interrupts import Noting
from collidium.runtime.limits import CallerLimits, Clock, TokenBuckets
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Cached tokens; valid ones separately, so that a flood of invalid ones does not evict them.
KNOWN_TOKENS: Final = 10_000
REJECTED_TOKENS: Final = 1_000
#: Formerly valid tokens are remembered for a day, to distinguish them from unknown ones.
ONCE_VALID_TOKENS, ONCE_VALID_SECONDS = 50_000, 24 * 3600.0
#: Unknown tokens that are validated concurrently: other connections stay free for known tokens.
UNKNOWN_AT_ONCE: Final = 16
#: Queries about model repositories per account: burst, and per minute.
MODEL_QUESTIONS: Final = 30
#: Lifetime of a cached rejection, which is short because the token may be created meanwhile. After a failure
#: the provider is not asked about the same known token for at least as long.
REJECTED_SECONDS: Final = 5.0

#: Not a token of any account.
_INVALID_TOKEN: Final = "hf_collidium_doctor"  # noqa: S105 -- of no account

_HITS, _MISSES = (metrics.CACHE.labels("tokens", result) for result in ("hit", "miss"))


@dataclass(slots=True)
class _Known:
    identity: Identity
    #: When to ask the provider again.
    fresh_until: float


class Identities:
    """Identifies the callers of one process with an identity provider.

    Parameters
    ----------
    provider
        Validates tokens; closed with this object, as are the others.
    settings
        Lifetime of cached answers, and limits for unknown tokens.
    clock
        Returns seconds.
    others
        Providers that validate tokens with their prefix, without a cache.
    """

    def __init__(
        self,
        provider: IdentityProvider,
        settings: Settings,
        clock: Clock = monotonic,
        others: Collection[IdentityProvider] = (),
    ) -> None:
        self._provider = provider
        self._by_prefix = {other.prefix: other for other in others if other.prefix}
        self._clock = clock
        self._fresh = settings.identity_cache_seconds
        kept = max(self._fresh, settings.identity_grace)
        self._known: TTLCache[str, _Known] = TTLCache(KNOWN_TOKENS, kept, timer=clock)
        rejected = min(self._fresh, REJECTED_SECONDS)
        self._rejected: TTLCache[str, bool] = TTLCache(REJECTED_TOKENS, rejected, timer=clock)
        self._once_valid: TTLCache[str, bool] = TTLCache(ONCE_VALID_TOKENS, ONCE_VALID_SECONDS, timer=clock)
        self._asking: SharedCalls[str, Identity | None] = SharedCalls()
        self._unknown_at_once = asyncio.Semaphore(UNKNOWN_AT_ONCE)
        self._patience = settings.identity_timeout_seconds
        self._limits = CallerLimits(
            "unknown tokens",
            settings.unknown_tokens_burst,
            settings.unknown_tokens_per_minute,
            settings.unknown_tokens_per_minute_in_all,
            clock,
        )
        self._model_questions = TokenBuckets(MODEL_QUESTIONS, MODEL_QUESTIONS, KNOWN_TOKENS, clock)

    async def identify(self, token: str, address: str) -> Identity | None:
        """Return the token's owner, or None if it is not valid.

        Parameters
        ----------
        token
            As the caller sent it.
        address
            The caller's IP address.

        Raises
        ------
        IdentityUnavailable
            If the provider is unavailable and the token was not valid recently.
        TooManyRequests
            If too many unknown tokens came from this address, or from all addresses.
        Forbidden
            For a hub account whose name is reserved for single sign-on.
        """
        for prefix, provider in self._by_prefix.items():
            if token.startswith(prefix):
                return await provider.identify(token)
        key = hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
        known = self._known.get(key)
        if known and self._clock() < known.fresh_until:
            _HITS.inc()
            return known.identity
        _MISSES.inc()
        if key in self._rejected:
            return None
        if not known and key not in self._asking:
            # A flood from other addresses does not affect formerly valid tokens.
            self._limits.take(address, in_all=key not in self._once_valid)
        ask = self._ask if known or key in self._once_valid else self._ask_about_unknown
        try:
            return await self._asking.run(key, lambda: ask(key, token))
        except IdentityUnavailable:
            if not known:
                raise
            known.fresh_until = self._clock() + max(self._fresh, REJECTED_SECONDS)
            return known.identity

    async def sees_model(self, identity: Identity, token: str, model_repo: str) -> bool:
        """Return whether the provider shows a model repository to ``token``.

        Raises TooManyRequests if the token's owner asked too often, and what the provider raises.
        """
        if not identity.on_hub:
            raise IdentityUnavailable("the token is not one of the hub's")
        wait = self._model_questions.seconds_left(identity.username)
        if wait > 0:
            raise TooManyRequests(
                "your links to models were checked too often; try again later", retry_after=math.ceil(wait)
            )
        self._model_questions.take(identity.username)
        return await self._provider.sees_model(token, model_repo)

    async def check(self) -> None:
        """Raise IdentityUnavailable if the provider does not respond."""
        await self._ask_provider(_INVALID_TOKEN)

    async def close(self) -> None:
        """Close the providers. Idempotent."""
        await self._asking.close()
        for provider in {self._provider, *self._by_prefix.values()}:
            await provider.close()

    async def _ask_about_unknown(self, key: str, token: str) -> Identity | None:
        try:
            async with asyncio.timeout(self._patience):
                await self._unknown_at_once.acquire()
        except TimeoutError:
            raise IdentityUnavailable("too many unknown tokens are being checked now") from None
        try:
            return await self._ask(key, token)
        finally:
            self._unknown_at_once.release()

    async def _ask(self, key: str, token: str) -> Identity | None:
        identity = await self._ask_provider(token)
        if identity is None:
            self._known.pop(key, None)
            self._once_valid.pop(key, None)
            self._rejected[key] = True
        else:
            self._known[key] = _Known(identity, self._clock() + self._fresh)
            self._once_valid[key] = True
        return identity

    async def _ask_provider(self, token: str) -> Identity | None:
        """Call the provider, and convert all its failures to IdentityUnavailable."""
        provider = self._provider
        try:
            with metrics.timed(metrics.HUB, metrics.HUB_FAILURES, "identity", IdentityUnavailable):
                identity = await provider.identify(token)
        except IdentityUnavailable:
            raise
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            if Noting.is_interrupt(error):
                raise
            # The message of a third-party provider may contain the token: report only type and place.
            place = extract_tb(error.__traceback__)[-1]
            raise IdentityUnavailable(
                f"{provider.name} failed with {type(error).__name__} at {place.filename}:{place.lineno}"
            ) from None
        if identity is None:
            return None
        if isinstance(identity, Identity):
            return _without_sso(identity)
        raise IdentityUnavailable(f"{provider.name} answered with {type(identity).__name__}, no Identity")


def _without_sso(identity: Identity) -> Identity:
    """Remove memberships that are reserved for single sign-on; raises Forbidden for a reserved name."""
    if _is_of_sso(identity.username):
        raise Forbidden(f"no account of the hub signs in as {identity.username}: its name is not the hub's")
    named = frozenset(name for name in identity.memberships if not _is_of_sso(name))
    return identity if named == identity.memberships else replace(identity, memberships=named)


def _is_of_sso(name: str) -> bool:
    return name.casefold().endswith(SSO_SUFFIX)
