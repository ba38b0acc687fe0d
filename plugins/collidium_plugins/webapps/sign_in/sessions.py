"""Who is signed in, in which browser."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Final

from collidium.secrets import LostKey, Secrets
from collidium_plugins.webapps.session import Session
from collidium_plugins.webapps.sign_in.keys import derived, digest, is_key, new_key
from collidium_plugins.webapps.sign_in.store import Store

#: Browsers in which one account is signed in at once; beyond that the oldest session ends.
MOST_PER_ACCOUNT: Final = 20
#: Seconds between two notes that somebody was here: pages need not write each time.
NOTED_EVERY: Final = 60.0


class Sessions:
    """The sessions of all server processes of this machine. ``clock`` tells seconds since 1970."""

    def __init__(
        self,
        store: Store,
        secrets: Secrets,
        *,
        idle_seconds: float,
        longest_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._idle_seconds = idle_seconds
        self._longest_seconds = longest_seconds
        self._clock = clock

    async def begin(self, name: str, token: str, expires_in: float | None = None) -> Session:
        """A session under a new key, which never outlives its token."""
        now = self._clock()
        seconds = self._longest_seconds if expires_in is None else min(self._longest_seconds, expires_in)
        session = _session(new_key(), name, token, now + seconds)

        def begin(db: sqlite3.Connection) -> Session:
            self._sweep(db, now)
            db.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)",
                (digest(session.key), name, self._secrets.encrypt(token), now, now, session.ends_at),
            )
            db.execute(
                "DELETE FROM sessions WHERE sha256 IN (SELECT sha256 FROM sessions WHERE name = ? "
                "ORDER BY begun_at DESC, sha256 LIMIT -1 OFFSET ?)",
                (name, MOST_PER_ACCOUNT),
            )
            return session

        return await self._store.transact(begin)

    async def find(self, key: str) -> Session | None:
        """The session of that key, if it has not ended."""
        if not is_key(key):
            return None
        now = self._clock()
        row = await self._store.read(lambda db: self._row(db, key, now))
        if row is None:
            return None
        session, seen_at = row
        if now - seen_at > NOTED_EVERY:
            await self._store.transact(
                lambda db: db.execute(
                    "UPDATE sessions SET seen_at = max(seen_at, ?) WHERE sha256 = ?", (now, digest(key))
                )
            )
        return session

    def seconds_left(self, session: Session) -> float:
        """How long it lasts at the most."""
        return session.ends_at - self._clock()

    async def end(self, key: str) -> None:
        """Sign out; what ended before stays ended."""
        await self._store.transact(
            lambda db: db.execute("DELETE FROM sessions WHERE sha256 = ?", (digest(key),))
        )

    def _row(self, db: sqlite3.Connection, key: str, now: float) -> tuple[Session, float] | None:
        row = db.execute(
            "SELECT name, token, ends_at, seen_at FROM sessions "
            "WHERE sha256 = ? AND ends_at > ? AND seen_at > ?",
            (digest(key), now, now - self._idle_seconds),
        ).fetchone()
        if row is None:
            return None
        name, token, ends_at, seen_at = row
        try:
            return _session(key, name, self._secrets.decrypt(token), ends_at), seen_at
        except LostKey:  # the operator took the key away: to sign in again is all that is lost
            return None

    def _sweep(self, db: sqlite3.Connection, now: float) -> None:
        db.execute("DELETE FROM sessions WHERE ends_at <= ? OR seen_at <= ?", (now, now - self._idle_seconds))


def _session(key: str, name: str, token: str, ends_at: float) -> Session:
    return Session(name, token, derived(key, "csrf"), key, ends_at)
