"""Who stands behind a token, for as long as the identity provider's answer holds.

Unknown tokens are limited, since each costs a call of the provider; known ones are not, and stay valid for a
while when the provider is unavailable. Whether an account is banned is read from the database, each time.
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
from collidium.runtime.limits import CallerLimits, Clock, TokenBuckets
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Tokens remembered; valid tokens are apart, so that a flood drives none out.
KNOWN_TOKENS: Final = 10_000
REJECTED_TOKENS: Final = 1_000
#: Tokens that were valid are remembered for a day, to distinguish them from those that never were.
ONCE_VALID_TOKENS, ONCE_VALID_SECONDS = 50_000, 24 * 3600.0
#: Unknown tokens that the provider is asked about at once: known ones find the rest of its connections free.
UNKNOWN_AT_ONCE: Final = 16
#: Questions about a model repository, of one account at once and in a minute.
MODEL_QUESTIONS: Final = 30
#: How long a rejection holds: the token may have been made a moment ago. After a failure of the provider, it
#: is not asked about the same known token for at least as long.
REJECTED_SECONDS: Final = 5.0

_HITS, _MISSES = (metrics.CACHE.labels("tokens", result) for result in ("hit", "miss"))


@dataclass(slots=True)
class _Known:
    identity: Identity
    #: Until then the provider is not asked.
    fresh_until: float


class Identities:
    """Identifies the callers of one process with an identity provider.

    Parameters
    ----------
    provider
        Asked about tokens; closed with this, as all others.
    settings
        How long answers hold, and how many unknown tokens are asked about.
    clock
        Returns seconds.
    others
        Providers that are asked about tokens with a prefix of theirs, each time.
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
            When the provider does not answer, and the token was not valid lately.
        TooManyRequests
            When the address, or all of them, sent too many unknown tokens.
        Forbidden
            For an account of the hub whose name belongs to single sign-on.
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
            # A flood of others takes nothing from who was here before.
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
        """Ask the provider whether ``token`` sees a model repository.

        Raises TooManyRequests when the token's owner asked too often, and what the provider raises.
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

    async def close(self) -> None:
        """Close the provider. Idempotent."""
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
        """Ask, and turn every failure of the provider into IdentityUnavailable."""
        provider = self._provider
        try:
            with metrics.timed(metrics.HUB, metrics.HUB_FAILURES, "identity", IdentityUnavailable):
                identity = await provider.identify(token)
        except IdentityUnavailable:
            raise
        except (Exception, SystemExit) as error:
            # A provider may be a third party's, and its message may hold the token: log kind and place.
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
    """What a hub says, without the names that only single sign-on gives. Raises Forbidden for an account."""
    if _is_of_sso(identity.username):
        raise Forbidden(f"no account of the hub signs in as {identity.username}: its name is not the hub's")
    named = frozenset(name for name in identity.memberships if not _is_of_sso(name))
    return identity if named == identity.memberships else replace(identity, memberships=named)


def _is_of_sso(name: str) -> bool:
    return name.casefold().endswith(SSO_SUFFIX)
