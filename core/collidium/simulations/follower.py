"""The follower: a loop over the database that moves every unfinished request one step on, again and again.

Any number of processes run it at once; leases keep them off each other's requests. Nothing is held in memory
that the database does not know, so a process may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tortoise.expressions import Q
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium import __version__, records
from collidium.database import transactional
from collidium.database.leased_loop import LeasedLoop
from collidium.runtime.failpoints import reached
from collidium.secrets import SHARED, differing_settings
from collidium.simulations import steps
from collidium.simulations.models import Follower, SimulationRequest, Step
from collidium.simulations.transitions import CHANGED

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Nothing is ever due later, and no lease is ever held for longer: what seems to be was written before
#: the clock was set back.
HORIZON: Final = timedelta(hours=2)
#: How often a process writes that it is there.
WRITE_SECONDS: Final = 5.0
#: How long a process that was killed is remembered.
REMEMBERED: Final = timedelta(days=1)
PRESENT: Final = timedelta(minutes=2)


class Lane(Enum):
    """Kinds of work that do not wait for each other."""

    #: Asking runners about jobs, hundreds in one call.
    POLL = Q(step=Step.FOLLOW, cancel_requested_at__isnull=True)
    #: Handing jobs over, and stopping them.
    HAND_OVER = Q(step=Step.SUBMIT) | Q(step=Step.FOLLOW, cancel_requested_at__isnull=False)
    #: Moving output: long, and heavy on disk and network.
    DELIVER = Q(step__in=[Step.STORE, Step.COLLECT, Step.PUBLISH])


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
    held = _Held(platform.settings.lease_seconds)
    presence = Presence(platform.secrets.fingerprint(platform.settings))
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


@asynccontextmanager
async def serving(platform: Platform) -> AsyncIterator[None]:
    """Record that this process serves while the context lasts, without following requests."""
    presence = Presence(platform.secrets.fingerprint(platform.settings), follows=False)
    keeping = asyncio.create_task(presence.keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
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
        lease = uuid.uuid4().hex
        maximum = min(WIDTH[self._lane] - sum(self._under_way.values()), CLAIM)
        if maximum > 0:
            # The transaction may be committed although the claim is cut off: then this lease is given back.
            with self._held.while_working(lease):
                rows = await claim(self._lane, maximum, self._platform.settings.lease_seconds, lease)
            reached("follow.claimed")
        for size, batch in self._batches(rows):
            self.begin(self._do(lease, batch), size)
        self._presence.looked(self._lane)
        # There may be more, and a poll of many is quick.
        return 0 < maximum == len(rows)

    def _batches(self, rows: Sequence[SimulationRequest]) -> Iterator[tuple[int, Awaitable[None]]]:
        if self._lane is not Lane.POLL:
            for row in rows:
                yield 1, steps.work(self._platform, row)
            return
        by_runner = sorted(rows, key=lambda row: row.runner)
        for runner, group in groupby(by_runner, key=lambda row: row.runner):
            jobs = list(group)
            yield len(jobs), steps.poll(self._platform, runner, jobs)

    async def _do(self, lease: str, batch: Awaitable[None]) -> None:
        with self._held.while_working(lease):
            try:
                await batch
            except Exception as error:
                # The lease runs out, and another process tries again.
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
                    await renew(self._leases, self._seconds)
                except Exception as error:
                    # The database is away; a lease that ran out meanwhile is noticed where it matters.
                    logger.warning("following: leases are not renewed: %s", error)

    async def give_back(self) -> None:
        """Let others go on at once with what was cut off."""
        if self._left:
            await give_back(self._left)


async def followers() -> list[records.Follower]:
    """The processes that follow requests, or did so in the last day and were killed; the latest first."""
    recent = Follower.filter(follows=True, looked_at__gt=now() - REMEMBERED)
    rows = await recent.order_by("-looked_at", "process")
    return [records.Follower.of(row) for row in rows]


async def processes() -> list[Follower]:
    """Each process that serves or follows requests now."""
    return await Follower.filter(looked_at__gt=now() - PRESENT).order_by("process")


async def other_settings(own: str) -> dict[str, list[str]]:
    """Processes that run with other settings than the fingerprint ``own``, by the name of the setting.

    One of another release may write others down in another way, but for the secret key.
    """
    found: dict[str, list[str]] = {}
    for one in await processes():
        for name in differing_settings(own, one.key):
            if one.release == __version__ or name == SHARED[0]:
                found.setdefault(name, []).append(one.process)
    return found


class Presence:
    """Records that this process follows requests, or only serves."""

    def __init__(self, key: str, *, follows: bool = True) -> None:
        self._key = key
        self._follows = follows
        self._process = f"{socket.gethostname()[:100]}:{os.getpid()}"
        self._looks: dict[Lane, datetime] = {}
        self._complete = asyncio.Event()

    def looked(self, lane: Lane) -> None:
        """A lane has just looked for work, whether or not there was any."""
        self._looks[lane] = now()
        if len(self._looks) == len(Lane):
            self._complete.set()

    async def keep(self) -> None:
        """Write it again and again, once every lane has looked for work."""
        if self._follows:
            await self._complete.wait()
        while True:
            try:
                await self._write(min(self._looks.values(), default=now()))
            except Exception as error:
                # Most likely the database is away: then it is true that nothing is followed.
                logger.warning("following: the presence of this process is not recorded: %s", error)
            await asyncio.sleep(WRITE_SECONDS)

    async def leave(self) -> None:
        """Remove the record of this process."""
        try:
            await Follower.filter(process=self._process).delete()
        except Exception as error:
            logger.warning("following: the end of this process is not recorded: %s", error)

    async def _write(self, moment: datetime) -> None:
        if not await Follower.filter(process=self._process).update(looked_at=moment):
            await Follower.filter(looked_at__lt=now() - REMEMBERED).delete()
            values = {"release": __version__, "key": self._key, "follows": self._follows}
            row = Follower(process=self._process, looked_at=moment, **values)
            await Follower.bulk_create([row], ignore_conflicts=True)


# -- leases ------------------------------------------------------------------------------------------


async def claim(lane: Lane, maximum: int, seconds: float, lease: str) -> list[SimulationRequest]:
    """Lease up to ``maximum`` requests that are due, oldest first, for that many seconds."""
    # SQLite locks everything for a transaction, so look first whether there is anything.
    if not await _due(lane).exists():
        return []
    return await _claim(lane, maximum, seconds, lease)


@transactional
async def _claim(lane: Lane, maximum: int, seconds: float, lease: str) -> list[SimulationRequest]:
    rows = await _due(lane).select_for_update(skip_locked=True).order_by("due_at").limit(maximum)
    until = now() + timedelta(seconds=seconds)
    await SimulationRequest.filter(id__in=[row.id for row in rows]).update(lease=lease, leased_until=until)
    for row in rows:
        row.lease, row.leased_until = lease, until
    return rows


async def renew(leases: Iterable[str], seconds: float) -> None:
    """Keep what is still held for that many seconds from now."""
    until = now() + timedelta(seconds=seconds)
    await SimulationRequest.filter(lease__in=list(leases)).update(leased_until=until)


async def give_back(leases: Iterable[str]) -> None:
    """Leave what is still held to others at once."""
    await SimulationRequest.filter(lease__in=list(leases)).update(lease="", leased_until=None)


def _due(lane: Lane) -> QuerySet[SimulationRequest]:
    moment = now()
    due = Q(due_at__lte=moment) | Q(due_at__gt=moment + HORIZON)
    free = Q(leased_until__isnull=True) | Q(leased_until__lte=moment) | Q(leased_until__gt=moment + HORIZON)
    return SimulationRequest.filter(lane.value, due, free)
