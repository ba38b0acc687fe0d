"""Polls the server every few seconds, less often while it is unreachable, and at once on request."""

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
    """Keeps a session's status up to date."""

    def __init__(self, session: Session, on_mistake: Callable[[Exception], None]) -> None:
        """``on_mistake`` is called with errors of the console itself that a poll ran into."""
        self._session = session
        self._on_mistake = on_mistake
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
            if self._session.status.link is Link.AWAY:
                pause = next(pauses, PAUSES_AWAY[-1])
            else:
                pause, pauses = PAUSE, iter(PAUSES_AWAY)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause)

    async def _look(self) -> None:
        try:
            await self._session.look()
        except CollidiumError:
            pass  # shown by the session's status
        except Exception as error:
            # Without polls the console would show old data for ever.
            self._on_mistake(error)
