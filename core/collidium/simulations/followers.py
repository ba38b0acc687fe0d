"""Which processes follow requests, and when each last looked for work: how operators see that nobody does."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from datetime import datetime, timedelta
from typing import Final

from tortoise.timezone import now

from collidium import records
from collidium.simulations.leases import Lane
from collidium.simulations.models import Follower

logger = logging.getLogger(__name__)

#: How often a process writes that it is there.
WRITE_SECONDS: Final = 5.0
#: How long a process that was killed is remembered.
REMEMBERED: Final = timedelta(days=1)


async def followers() -> list[records.Follower]:
    """The processes that follow requests, or did so in the last day and were killed; the latest first."""
    rows = await Follower.filter(looked_at__gt=now() - REMEMBERED).order_by("-looked_at", "process")
    return [records.Follower.of(row) for row in rows]


class Presence:
    """What this process tells of its own looks."""

    def __init__(self) -> None:
        self._process = f"{socket.gethostname()[:100]}:{os.getpid()}"
        self._looks: dict[Lane, datetime] = {}
        self._complete = asyncio.Event()

    def looked(self, lane: Lane) -> None:
        """A lane has just looked for work, whether or not there was any."""
        self._looks[lane] = now()
        if len(self._looks) == len(Lane):
            self._complete.set()

    async def keep(self) -> None:
        """Tell it again and again, for ever, once every lane has looked."""
        await self._complete.wait()
        while True:
            try:
                await self._write(min(self._looks.values()))
            except Exception as error:
                # Most likely the database is away: then it is true that nothing is followed.
                logger.warning("following: it is not told that this process does: %s", error)
            await asyncio.sleep(WRITE_SECONDS)

    async def leave(self) -> None:
        """Tell no more: this process follows nothing now."""
        try:
            await Follower.filter(process=self._process).delete()
        except Exception as error:
            logger.warning("following: it is not told that this process has ended: %s", error)

    async def _write(self, moment: datetime) -> None:
        if not await Follower.filter(process=self._process).update(looked_at=moment):
            await Follower.filter(looked_at__lt=now() - REMEMBERED).delete()
            row = Follower(process=self._process, looked_at=moment)
            await Follower.bulk_create([row], ignore_conflicts=True)
