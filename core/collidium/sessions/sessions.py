"""Who is signed in, in which browser; and sign-ins under way at the hub, how often they are attempted."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from tortoise import timezone
from tortoise.expressions import F, Q
from tortoise.models import Model
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium import database
from collidium.database import transactional
from collidium.database.statements import RowByKey
from collidium.errors import TooManyRequests
from collidium.files import data_directory
from collidium.runtime.limits import network_of
from collidium.secrets import LostKey, Secrets, open_secrets
from collidium.sessions import models
from collidium.sessions.models import SignInAttempts, WebSession

if TYPE_CHECKING:
    from collidium.settings import Settings

M = TypeVar("M", bound=Model)

#: Browsers in which one account is signed in at once; beyond that the oldest session ends.
MAX_PER_ACCOUNT: Final = 20
#: ``seen_at`` is true to this much, so that reading does not write on every request.
SEEN_PRECISION: Final = timedelta(minutes=1)
#: Ended rows that are deleted at once.
SWEPT: Final = 1000

#: 256 bits, as 43 characters that may stand in cookies and addresses.
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")

_by_digest: Final = RowByKey(WebSession, "digest")
#: How long a sign-in may take at the hub.
PENDING_SECONDS: Final = 600
#: All addresses together may make so many times the attempts of one.
OVERALL: Final = 50


@dataclass(frozen=True, slots=True)
class Session:
    """An account that is signed in, in one browser."""

    hub_username: str
    #: The hub token that acts for it; no browser ever sees it.
    token: str = field(repr=False)
    #: What the browser's cookie holds.
    key: str = field(repr=False)
    #: When it ends at the latest.
    ends_at: datetime
    #: What the hub granted to the token.
    scopes: frozenset[str] = frozenset()

    @property
    def csrf(self) -> str:
        """The secret that forms and scripts of its pages send."""
        return derived(self.key, "csrf")


class Sessions:
    """The sessions in the connected database.

    Parameters
    ----------
    settings
        How long sessions last.
    secrets
        Encrypts the hub tokens.
    clock
        Returns the current time.
    """

    def __init__(
        self, settings: Settings, secrets: Secrets, clock: Callable[[], datetime] = timezone.now
    ) -> None:
        self._idle = timedelta(hours=settings.session_idle_hours)
        self._longest = timedelta(hours=settings.session_hours)
        self._secrets = secrets
        self._clock = clock

    @transactional
    async def begin(
        self, hub_username: str, token: str, expires_in: float | None = None, scopes: Iterable[str] = ()
    ) -> Session:
        """Begin a session under a new key; it ends with its token, in ``expires_in`` seconds."""
        now = self._clock()
        seconds = self._longest.total_seconds()
        if expires_in is not None:
            seconds = max(0.0, min(seconds, expires_in))
        ends_at = now + timedelta(seconds=seconds)
        session = Session(hub_username, token, new_key(), ends_at, frozenset(scopes))
        await delete(WebSession.filter(Q(ends_at__lte=now) | Q(seen_at__lte=now - self._idle)))
        await WebSession.create(
            digest=digest(session.key),
            hub_username=hub_username,
            token=self._secrets.encrypt(token),
            scopes=" ".join(sorted(session.scopes)),
            begun_at=now,
            seen_at=now,
            ends_at=session.ends_at,
        )
        latest = WebSession.filter(hub_username=hub_username).order_by("-begun_at", "digest")
        await delete(latest.offset(MAX_PER_ACCOUNT))
        return session

    async def find(self, key: str) -> Session | None:
        """The session of that key; None where it has ended or the key of its encryption is gone."""
        row = await _by_digest.get_or_none(digest(key)) if is_key(key) else None
        now = self._clock()
        if row is None:
            return None
        if row.ends_at <= now or row.seen_at <= now - self._idle:
            await self.end(key)
            return None
        try:
            token = self._secrets.decrypt(row.token)
        except LostKey:  # the operator removed the key: its users sign in again
            return None
        if now - row.seen_at > SEEN_PRECISION:
            await WebSession.filter(digest=row.digest, seen_at__lt=now).update(seen_at=now)
        return Session(row.hub_username, token, key, row.ends_at, frozenset(row.scopes.split()))

    async def end(self, key: str) -> None:
        """Sign out. Idempotent."""
        await WebSession.filter(digest=digest(key)).delete()

    def seconds_left(self, session: Session) -> float:
        """How long it lasts at the most."""
        return (session.ends_at - self._clock()).total_seconds()


async def forget(hub_username: str) -> None:
    """End all sessions of an account."""
    await WebSession.filter(hub_username=hub_username).delete()


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Sessions]:
    """Sessions of a process that opens no platform; the embedded SQLite database is made when absent."""
    await asyncio.to_thread(data_directory.make_database_file, settings)
    secrets = await asyncio.to_thread(open_secrets, settings)
    async with database.opened(settings):
        yield Sessions(settings, secrets)


async def delete(rows: QuerySet[M]) -> None:
    """Delete rows but for those that others are just deleting: two transactions never wait in a circle."""
    found = await rows.select_for_update(skip_locked=True).limit(SWEPT)
    if found:
        await rows.model.filter(pk__in=[row.pk for row in found]).delete()


# -- keys ---------------------------------------------------------------------------------------------


def new_key() -> str:
    """A random key of 256 bits."""
    return secrets.token_urlsafe(32)


def is_key(text: str) -> bool:
    """Whether it could be a key of ours."""
    return _KEY.fullmatch(text) is not None


def digest(key: str) -> str:
    """What is stored of a key: enough to recognise it, not enough to act as its holder."""
    return hashlib.sha256(key.encode()).hexdigest()


def derived(key: str, purpose: str) -> str:
    """Another key for one purpose, which reveals nothing of this one (HMAC-SHA256).

    43 characters of base64url, which is also what RFC 7636 asks of a code verifier.
    """
    mac = hmac.digest(key.encode(), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode("ascii")


# -- sign-ins that are under way ------------------------------------------------------------------------


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
    for key, limit in limits.items():
        await SignInAttempts.bulk_create([SignInAttempts(key=key, minute=minute)], ignore_conflicts=True)
        await SignInAttempts.filter(key=key).update(count=F("count") + 1)
        # One address that tries too often does not use up what all others have.
        if (await SignInAttempts.get(key=key)).count > limit:
            return False
    return True
