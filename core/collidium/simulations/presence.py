"""Which processes serve or follow requests: each records itself in the database and renews its record."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import __version__, records
from collidium.secrets import SHARED, differing_settings
from collidium.simulations.models import Follower

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Seconds between two writes of a process's record.
WRITE_SECONDS: Final = 5.0
#: How long the record of a killed process is kept.
KEPT: Final = timedelta(days=1)
#: A process whose record is older than this no longer counts as running.
CURRENT: Final = timedelta(minutes=2)


@asynccontextmanager
async def serving(platform: Platform) -> AsyncIterator[None]:
    """Record that this process serves while the context lasts, without following requests."""
    presence = Presence(platform.secrets.fingerprint(platform.settings))
    keeping = asyncio.create_task(presence.keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await presence.leave()


async def followers() -> list[records.Follower]:
    """Return the processes that follow requests or were killed within the last day, latest first."""
    recent = Follower.filter(follows=True, looked_at__gt=now() - KEPT)
    rows = await recent.order_by("-looked_at", "process")
    return [records.Follower.of(row) for row in rows]


async def processes() -> list[Follower]:
    """Return the processes that serve or follow requests now."""
    return await Follower.filter(looked_at__gt=now() - CURRENT).order_by("process")


async def other_settings(own: str) -> dict[str, list[str]]:
    """Return the processes whose settings differ from the fingerprint ``own``, by the name of the setting.

    Another release may fingerprint settings differently, except for the secret key.
    """
    found: dict[str, list[str]] = {}
    for process in await processes():
        for name in differing_settings(own, process.key):
            if process.release == __version__ or name == SHARED[0]:
                found.setdefault(name, []).append(process.process)
    return found


class Presence:
    """The record of this process.

    ``loops`` is the number of loops in which it follows requests; 0 if it only serves.
    """

    def __init__(self, key: str, loops: int = 0) -> None:
        self._key = key
        self._loops = loops
        self._process = f"{socket.gethostname()[:100]}:{os.getpid()}"
        self._looks: dict[str, datetime] = {}
        self._complete = asyncio.Event()

    def looked(self, loop: str) -> None:
        """Note that a loop has just looked for work, whether or not there was any."""
        self._looks[loop] = now()
        if len(self._looks) == self._loops:
            self._complete.set()

    async def keep(self) -> None:
        """Renew the record until cancelled; start once every loop has looked for work."""
        if self._loops:
            await self._complete.wait()
        while True:
            try:
                await self._write(min(self._looks.values(), default=now()))
            except Exception as error:
                # Most likely the database is unreachable: then indeed nothing is followed.
                logger.warning("following: the presence of this process is not recorded: %s", error)
            await asyncio.sleep(WRITE_SECONDS)

    async def leave(self) -> None:
        """Remove the record."""
        try:
            await Follower.filter(process=self._process).delete()
        except Exception as error:  # the record expires by itself
            logger.warning("following: the end of this process is not recorded: %s", error)

    async def _write(self, moment: datetime) -> None:
        if not await Follower.filter(process=self._process).update(looked_at=moment):
            await Follower.filter(looked_at__lt=now() - KEPT).delete()
            values = {"release": __version__, "key": self._key, "follows": self._loops > 0}
            row = Follower(process=self._process, looked_at=moment, **values)
            await Follower.bulk_create([row], ignore_conflicts=True)
