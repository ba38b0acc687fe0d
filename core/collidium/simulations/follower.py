"""The follower: a loop over the database that moves every unfinished request one step on, again and again.

Any number of processes run it at once; leases keep them off each other's requests. Nothing is held in memory
that the database does not know, so a process may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Final

from collidium.database.leased_loop import LeasedLoop
from collidium.runtime.failpoints import reached
from collidium.simulations import leases, steps
from collidium.simulations.followers import Presence
from collidium.simulations.leases import Lane
from collidium.simulations.models import SimulationRequest
from collidium.simulations.transitions import CHANGED

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: How many requests each lane works on at once in one process.
WIDTH: Final = {Lane.POLL: 2000, Lane.HAND_OVER: 16, Lane.DELIVER: 4}
#: How many are claimed in one go: to read them holds up whatever else the process does.
CLAIM: Final = 500
#: Seconds between two looks into the database without a notification.
IDLE_SECONDS: Final = 0.5
#: A lease is renewed so often before it would run out.
RENEWALS: Final = 3


@asynccontextmanager
async def following(platform: Platform) -> AsyncIterator[None]:
    """Follow requests in the background while the context lasts; what is under way then is left to others."""
    held, presence = _Held(platform.settings.lease_seconds), Presence()
    async with asyncio.TaskGroup() as loops:
        tasks = [loops.create_task(_follow(platform, lane, held, presence)) for lane in Lane]
        tasks += [loops.create_task(held.keep()), loops.create_task(presence.keep())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
    await held.give_back()
    await presence.leave()


async def _follow(platform: Platform, lane: Lane, held: _Held, presence: Presence) -> None:
    loop = _LaneLoop(platform, lane, held, presence)
    try:
        await loop.run()
    finally:
        await loop.stop()


class _LaneLoop(LeasedLoop[int]):
    """Takes on the requests of one lane; its work is how many of them a task has."""

    def __init__(self, platform: Platform, lane: Lane, held: _Held, presence: Presence) -> None:
        super().__init__(f"following ({lane.name.lower()})", CHANGED, IDLE_SECONDS)
        self._platform = platform
        self._lane = lane
        self._held = held
        self._presence = presence

    async def take(self) -> bool:
        rows: Sequence[SimulationRequest] = []
        most = min(WIDTH[self._lane] - sum(self._under_way.values()), CLAIM)
        if most > 0:
            rows = await leases.claim(self._lane, most, self._platform.settings.lease_seconds)
            reached("follow.claimed")
        for size, piece in self._pieces(rows):
            self.begin(self._do(rows[0].lease, piece), size)
        self._presence.looked(self._lane)
        # There may be more, and a poll of many is quick.
        return 0 < most == len(rows)

    def _pieces(self, rows: Sequence[SimulationRequest]) -> Iterator[tuple[int, Awaitable[None]]]:
        if self._lane is not Lane.POLL:
            for row in rows:
                yield 1, steps.work(self._platform, row)
            return
        by_runner = sorted(rows, key=lambda row: row.runner)
        for runner, group in groupby(by_runner, key=lambda row: row.runner):
            jobs = list(group)
            yield len(jobs), steps.poll(self._platform, runner, jobs)

    async def _do(self, lease: str, piece: Awaitable[None]) -> None:
        with self._held.while_working(lease):
            try:
                await piece
            except Exception as error:
                # The lease runs out and somebody tries again.
                logger.warning("%s: %s", self._name, error)


class _Held:
    """The leases that this process works under, kept from running out."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._leases: Counter[str] = Counter()
        self._left: set[str] = set()

    @contextmanager
    def while_working(self, lease: str) -> Iterator[None]:
        """Renew the lease while the context lasts; it is remembered if that was cut off."""
        self._leases[lease] += 1
        try:
            yield
        except asyncio.CancelledError:
            self._left.add(lease)
            raise
        finally:
            self._leases[lease] -= 1
            if not self._leases[lease]:
                del self._leases[lease]

    async def keep(self) -> None:
        """Renew what is held, for ever."""
        while True:
            await asyncio.sleep(self._seconds / RENEWALS)
            if self._leases:
                try:
                    await leases.renew(self._leases, self._seconds)
                except Exception as error:
                    # The database is away; a lease that ran out meanwhile is noticed where it matters.
                    logger.warning("following: leases are not renewed: %s", error)

    async def give_back(self) -> None:
        """Let others go on at once with what was cut off."""
        if self._left:
            await leases.give_back(self._left)
