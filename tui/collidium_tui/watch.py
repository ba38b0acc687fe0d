"""Looks at the server every few seconds, less often while it is away, and at once when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from collidium.errors import CollidiumError
from collidium_tui.session import Link, Session

#: Seconds between two looks.
PAUSE: Final = 5.0
#: Seconds between attempts to find it again; the last one for good.
PAUSES_AWAY: Final = (1.0, 2.0, 4.0, 8.0, 15.0)


class Watch:
    """Keeps a session's standing true."""

    def __init__(self, session: Session, mistaken: Callable[[Exception], None]) -> None:
        """``mistaken`` is told of mistakes in the console itself that a look ran into."""
        self._session = session
        self._mistaken = mistaken
        self._wanted = asyncio.Event()

    def look_now(self) -> None:
        """Do not wait for the next look."""
        self._wanted.set()

    async def keep(self) -> None:
        """Look until cancelled."""
        pauses = iter(PAUSES_AWAY)
        while True:
            self._wanted.clear()
            if self._session.signed_in:
                await self._look()
            if self._session.standing.link is Link.AWAY:
                pause = next(pauses, PAUSES_AWAY[-1])
            else:
                pause, pauses = PAUSE, iter(PAUSES_AWAY)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause)

    async def _look(self) -> None:
        try:
            await self._session.look()
        except CollidiumError:
            pass  # told in the session's standing
        except Exception as error:
            # Whoever does not look any more would show for ever what once was so.
            self._mistaken(error)
