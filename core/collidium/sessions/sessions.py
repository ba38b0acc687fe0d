"""Browser sessions, sign-ins in progress at the hub, and limits on sign-in attempts."""

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

#: Maximum number of sessions per account; beyond that the oldest one ends.
MAX_PER_ACCOUNT: Final = 20
#: Precision of ``seen_at``, so that not every request writes.
SEEN_PRECISION: Final = timedelta(minutes=1)
#: Maximum number of ended rows that are deleted at a time.
SWEPT: Final = 1000

#: 256 bits as base64url.
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")

_by_digest: Final = RowByKey(WebSession, "digest")
#: Maximum duration of a sign-in at the hub.
PENDING_SECONDS: Final = 600
#: Limit of all addresses together, as a multiple of that of one.
OVERALL: Final = 50


@dataclass(frozen=True, slots=True)
class Session:
    """The session of an account in one browser."""

    hub_username: str
    #: Its hub token, which is never sent to the browser.
    token: str = field(repr=False)
    #: Value of the browser's cookie.
    key: str = field(repr=False)
    #: Maximum lifetime.
    ends_at: datetime
    #: Scopes of the token on the hub.
    scopes: frozenset[str] = frozenset()

    @property
    def csrf(self) -> str:
        """The CSRF token that its forms and scripts send."""
        return derived(self.key, "csrf")


class Sessions:
    """The sessions in the connected database.

    Parameters
    ----------
    settings
        Lifetime of sessions.
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
        """Start a session with a new key; it ends with its token, in ``expires_in`` seconds."""
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
        """Return the session with that key; None if it has ended or its token cannot be decrypted."""
        row = await _by_digest.get_or_none(digest(key)) if is_key(key) else None
        now = self._clock()
        if row is None:
            return None
        if row.ends_at <= now or row.seen_at <= now - self._idle:
            await self.end(key)
            return None
        try:
            token = self._secrets.decrypt(row.token)
        except LostKey:  # the operator removed the key: users have to sign in again
            return None
        if now - row.seen_at > SEEN_PRECISION:
            await WebSession.filter(digest=row.digest, seen_at__lt=now).update(seen_at=now)
        return Session(row.hub_username, token, key, row.ends_at, frozenset(row.scopes.split()))

    async def end(self, key: str) -> None:
        """Sign out. Idempotent."""
        await WebSession.filter(digest=digest(key)).delete()

    def seconds_left(self, session: Session) -> float:
        """Return its maximum remaining lifetime."""
        return (session.ends_at - self._clock()).total_seconds()


async def forget(hub_username: str) -> None:
    """End all sessions of an account."""
    await WebSession.filter(hub_username=hub_username).delete()


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Sessions]:
    """Open the sessions of a process without a platform; creates the embedded SQLite database if absent."""
    await asyncio.to_thread(data_directory.make_database_file, settings)
    secrets = await asyncio.to_thread(open_secrets, settings)
    async with database.opened(settings):
        yield Sessions(settings, secrets)


async def delete(rows: QuerySet[M]) -> None:
    """Delete rows except those that another transaction has locked, which avoids deadlocks."""
    found = await rows.select_for_update(skip_locked=True).limit(SWEPT)
    if found:
        await rows.model.filter(pk__in=[row.pk for row in found]).delete()


# -- keys ---------------------------------------------------------------------------------------------


def new_key() -> str:
    """Return a random key of 256 bits."""
    return secrets.token_urlsafe(32)


def is_key(text: str) -> bool:
    """Whether a text has the format of a key."""
    return _KEY.fullmatch(text) is not None


def digest(key: str) -> str:
    """Return the hash of a key that is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def derived(key: str, purpose: str) -> str:
    """Derive another secret from a key, which does not reveal the key (HMAC-SHA256).

    It has 43 characters of base64url, as RFC 7636 requires of a code verifier.
    """
    mac = hmac.digest(key.encode(), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode("ascii")


# -- sign-ins in progress -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BegunSignIn:
    """A sign-in in progress: the cookie's key, and the addresses to return to."""

    key: str = field(repr=False)
    redirect_uri: str
    #: The page to return to.
    return_to: str
    #: Requested scopes.
    scopes: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """The ``state`` parameter, which binds the response to this browser (RFC 6749, 10.12)."""
        return derived(self.key, "state")

    @property
    def nonce(self) -> str:
        """The ``nonce``, which binds the id token to this sign-in (OpenID Connect Core, 3.1.2.1)."""
        return derived(self.key, "nonce")

    @property
    def verifier(self) -> str:
        """The PKCE code verifier (RFC 7636)."""
        return derived(self.key, "verifier")


@transactional
async def begin(redirect_uri: str, return_to: str, scopes: Iterable[str] = ()) -> BegunSignIn:
    """Start a sign-in with a new key."""
    sign_in = BegunSignIn(new_key(), redirect_uri, return_to, tuple(scopes))
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
async def finish(keys: Iterable[str], state: str) -> BegunSignIn | None:
    """Return and delete the sign-in of one of the browser's ``keys`` that has this ``state``, if any."""
    own = (key for key in keys if is_key(key))
    matching = [key for key in own if hmac.compare_digest(derived(key, "state").encode(), state.encode())]
    if not matching:
        return None
    key = matching[0]
    row = await models.PendingSignIn.select_for_update().get_or_none(digest=digest(key))
    if row is None:
        return None
    await row.delete()
    if row.ends_at <= now():
        return None
    return BegunSignIn(key, row.redirect_uri, row.return_to, tuple(row.scopes.split()))


async def count_attempt(kind: str, address: str, per_minute: int) -> None:
    """Count a sign-in attempt from an address. Raises TooManyRequests above ``per_minute``."""
    seconds = time.time()
    minute = int(seconds // 60)
    limits = {
        f"{minute} {kind} {network_of(address)}": per_minute,
        f"{minute} {kind} *": per_minute * OVERALL,
    }
    known = await SignInAttempts.filter(key__in=list(limits))
    # A flood that is rejected anyway writes nothing.
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
        # Return early: one address must not use up the common limit.
        if (await SignInAttempts.get(key=key)).count > limit:
            return False
    return True
