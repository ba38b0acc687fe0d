"""Sign-ins on their way through the hub: left with a key in this browser, and come back once, or never."""

from __future__ import annotations

import hmac
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from collidium_plugins.webapps.sign_in.keys import derived, digest, is_key, new_key
from collidium_plugins.webapps.sign_in.store import Store

#: How long somebody may take at the hub.
SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Departure:
    """One sign-in: the cookie's key, and the addresses to come back to."""

    key: str = field(repr=False)
    #: Where the hub sends the browser.
    redirect_uri: str
    #: The page of ours on which it goes on.
    return_to: str

    @property
    def state(self) -> str:
        """Goes through the hub; only this browser can come back with it (RFC 6749, 10.12)."""
        return derived(self.key, "state")

    @property
    def nonce(self) -> str:
        """Comes back in the id token, which is so made for this sign-in (OpenID Connect Core, 3.1.2.1)."""
        return derived(self.key, "nonce")

    @property
    def verifier(self) -> str:
        """Proves that whoever brings the code is who asked for it (RFC 7636)."""
        return derived(self.key, "verifier")


class Departures:
    """Those of all server processes of this machine."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def begin(self, redirect_uri: str, return_to: str) -> Departure:
        """A new one, under a new key."""
        now = self._clock()
        departure = Departure(new_key(), redirect_uri, return_to)

        def begin(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM departures WHERE ends_at <= ?", (now,))
            db.execute(
                "INSERT INTO departures VALUES (?, ?, ?, ?)",
                (digest(departure.key), redirect_uri, return_to, now + SECONDS),
            )

        await self._store.transact(begin)
        return departure

    async def end(self, key: str, state: str) -> Departure | None:
        """The sign-in that this browser left for, if ``state`` is its own; nobody gets it a second time."""
        if not is_key(key) or not hmac.compare_digest(derived(key, "state").encode(), state.encode()):
            return None
        now = self._clock()

        def end(db: sqlite3.Connection) -> Departure | None:
            row = db.execute(
                "SELECT redirect_uri, return_to FROM departures WHERE sha256 = ? AND ends_at > ?",
                (digest(key), now),
            ).fetchone()
            db.execute("DELETE FROM departures WHERE sha256 = ?", (digest(key),))
            return None if row is None else Departure(key, *row)

        return await self._store.transact(end)
