"""How often somebody may try to sign in."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Final

from collidium.errors import TooManyRequests
from collidium.runtime.limits import network_of
from collidium_plugins.webapps.sign_in.store import Store

#: Everybody together may try so many times as often as one address.
OVERALL: Final = 50
_EVERYBODY: Final = "*"


class Limits:
    """Counts attempts by the minute, for all server processes of this machine together."""

    def __init__(self, store: Store, per_minute: int, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._per_minute = per_minute
        self._clock = clock

    async def count(self, kind: str, address: str) -> None:
        """Note an attempt from there. Raises TooManyRequests."""
        now = self._clock()
        minute = int(now // 60)
        if await self._store.transact(lambda db: self._allowed(db, minute, kind, network_of(address))):
            return
        raise TooManyRequests(
            "too many sign-ins were begun in this minute; wait a little and try again",
            retry_after=max(1, int(60 * (minute + 1) - now) + 1),
        )

    def _allowed(self, db: sqlite3.Connection, minute: int, kind: str, address: str) -> bool:
        db.execute("DELETE FROM attempts WHERE minute < ?", (minute,))
        for who, most in ((address, self._per_minute), (_EVERYBODY, self._per_minute * OVERALL)):
            (count,) = db.execute(
                "INSERT INTO attempts VALUES (?, ?, ?, 1) "
                "ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count",
                (minute, kind, who),
            ).fetchone()
            # One address that tries too often does not use up what all others have.
            if count > most:
                return False
        return True
