"""Sign-ins that are under way at the hub, and how often they may be attempted."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from tortoise.expressions import F
from tortoise.timezone import now

from collidium.database import transactional
from collidium.errors import TooManyRequests
from collidium.runtime.limits import network_of
from collidium.sessions import models
from collidium.sessions.models import SignInAttempts
from collidium.sessions.sessions import delete, derived, digest, is_key, new_key

#: How long a sign-in may take at the hub.
PENDING_SECONDS: Final = 600
#: All addresses together may make so many times the attempts of one.
OVERALL: Final = 50


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """One sign-in: the cookie's key, and the addresses to come back to."""

    key: str = field(repr=False)
    #: Where the hub sends the browser.
    redirect_uri: str
    #: The page of ours on which it goes on.
    return_to: str
    #: What the hub is asked for.
    scopes: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Goes through the hub; only this browser can come back with it (RFC 6749, 10.12)."""
        return derived(self.key, "state")

    @property
    def nonce(self) -> str:
        """Comes back in the id token, which is thus made for this sign-in (OpenID Connect Core, 3.1.2.1)."""
        return derived(self.key, "nonce")

    @property
    def verifier(self) -> str:
        """Proves that the code is redeemed by who asked for it (RFC 7636)."""
        return derived(self.key, "verifier")


@transactional
async def begin(redirect_uri: str, return_to: str, scopes: Iterable[str] = ()) -> PendingSignIn:
    """Begin a sign-in under a new key."""
    sign_in = PendingSignIn(new_key(), redirect_uri, return_to, tuple(scopes))
    await delete(models.PendingSignIn.filter(ends_at__lte=now()))
    await models.PendingSignIn.create(
        digest=digest(sign_in.key),
        redirect_uri=redirect_uri,
        return_to=return_to,
        scopes=" ".join(sign_in.scopes),
        ends_at=now() + timedelta(seconds=PENDING_SECONDS),
    )
    return sign_in


@transactional
async def finish(key: str, state: str) -> PendingSignIn | None:
    """The sign-in that this browser began, if ``state`` belongs to it; None the second time."""
    if not is_key(key) or not hmac.compare_digest(derived(key, "state").encode(), state.encode()):
        return None
    row = await models.PendingSignIn.select_for_update().get_or_none(digest=digest(key))
    if row is None:
        return None
    await row.delete()
    if row.ends_at <= now():
        return None
    return PendingSignIn(key, row.redirect_uri, row.return_to, tuple(row.scopes.split()))


async def count_attempt(kind: str, address: str, per_minute: int) -> None:
    """Count an attempt from that address in this minute. Raises TooManyRequests beyond ``per_minute``."""
    seconds = time.time()
    minute = int(seconds // 60)
    limits = {
        f"{minute} {kind} {network_of(address)}": per_minute,
        f"{minute} {kind} *": per_minute * OVERALL,
    }
    known = await SignInAttempts.filter(key__in=list(limits))
    # A flood that is refused anyway writes nothing.
    if any(row.count >= limits[row.key] for row in known) or not await _count(minute, limits):
        raise TooManyRequests(
            "too many sign-ins were begun in this minute; wait a little and try again",
            retry_after=max(1, int(60 * (minute + 1) - seconds) + 1),
        )


@transactional
async def _count(minute: int, limits: dict[str, int]) -> bool:
    await delete(SignInAttempts.filter(minute__lt=minute))
    for key, most in limits.items():
        await SignInAttempts.bulk_create([SignInAttempts(key=key, minute=minute)], ignore_conflicts=True)
        await SignInAttempts.filter(key=key).update(count=F("count") + 1)
        # One address that tries too often does not use up what all others have.
        if (await SignInAttempts.get(key=key)).count > most:
            return False
    return True
