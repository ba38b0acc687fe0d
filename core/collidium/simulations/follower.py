"""The follower: loops that claim requests that are due and do the next step of each.

Its processes, and those that only serve, each record themselves in the database and renew the record.

Any number of processes run it at once: each works only on requests that it has leased. All state is in the
database, so a process may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tortoise.expressions import Q
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium import __version__, records
from collidium.database.leased_loop import LeasedLoop
from collidium.database.leases import RENEWALS
from collidium.runtime.failpoints import reached
from collidium.secrets import SHARED, differing_settings
from collidium.simulations import settling
from collidium.simulations.claims import LEASES
from collidium.simulations.models import Follower, SimulationRequest, Step
from collidium.simulations.transitions import CHANGED

if TYPE_CHECKING:
    from collidium.platform import Platform


logger = logging.getLogger(__name__)

#: No due time and no lease lies further ahead than this. One that does was written before the clock was set
#: back, and is ignored.
HORIZON: Final = timedelta(hours=2)

#: Maximum number of requests in one claim: reading their rows blocks the event loop.
CLAIM: Final = 500
#: Seconds between two queries when there is no notification.
IDLE_SECONDS: Final = 0.5
#: Seconds between two writes of a process's record.
WRITE_SECONDS: Final = 5.0
#: How long the record of a killed process is kept.
KEPT: Final = timedelta(days=1)
#: A process whose record is older than this no longer counts as running.
CURRENT: Final = timedelta(minutes=2)


class Lane(Enum):
    """Kinds of work, each with a loop of its own, so that none waits for another."""

    #: Poll runners, with hundreds of jobs in one call.
    POLL = Q(step=Step.FOLLOW, cancel_requested_at__isnull=True)
    #: Submit jobs and cancel them.
    HAND_OVER = Q(step=Step.SUBMIT) | Q(step=Step.FOLLOW, cancel_requested_at__isnull=False)
    #: Move output: slow, and heavy on disk and network.
    DELIVER = Q(step__in=[Step.STORE, Step.COLLECT, Step.PUBLISH])


#: Maximum number of requests that a lane of one process works on at once.
WIDTH: Final = {Lane.POLL: 2000, Lane.HAND_OVER: 16, Lane.DELIVER: 4}


@asynccontextmanager
async def following(platform: Platform) -> AsyncIterator[None]:
    """Follow requests in the background while the context lasts, then release the unfinished ones."""
    leases = _HeldLeases(platform.settings.lease_seconds)
    presence = Presence(platform.secrets.fingerprint(platform.settings), loops=len(Lane))
    async with asyncio.TaskGroup() as loops:
        tasks = [loops.create_task(_follow(platform, lane, leases, presence)) for lane in Lane]
        tasks += [loops.create_task(leases.keep()), loops.create_task(presence.keep())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
    await leases.release_interrupted()
    await presence.leave()


async def _follow(platform: Platform, lane: Lane, leases: _HeldLeases, presence: Presence) -> None:
    loop = _LaneLoop(platform, lane, leases, presence)
    try:
        await loop.run()
    finally:
        await loop.stop()


class _LaneLoop(LeasedLoop[int]):
    """The loop of one lane. The value of each of its tasks is the number of requests that it works on."""

    def __init__(self, platform: Platform, lane: Lane, leases: _HeldLeases, presence: Presence) -> None:
        super().__init__(f"following ({lane.name.lower()})", CHANGED, IDLE_SECONDS)
        self._platform = platform
        self._lane = lane
        self._leases = leases
        self._presence = presence

    async def take(self) -> bool:
        rows: Sequence[SimulationRequest] = []
        lease = uuid.uuid4().hex
        maximum = min(WIDTH[self._lane] - sum(self._under_way.values()), CLAIM)
        if maximum > 0:
            # A cancelled claim may have been committed: then this lease is released at the end.
            with self._leases.held(lease):
                rows = await claim(self._lane, maximum, self._platform.settings.lease_seconds, lease)
            reached("follow.claimed")
        for size, batch in self._batches(rows):
            self.begin(self._do(lease, batch), size)
        self._presence.looked(self._lane.name)
        return 0 < maximum == len(rows)

    def _batches(self, rows: Sequence[SimulationRequest]) -> Iterator[tuple[int, Awaitable[None]]]:
        if self._lane is not Lane.POLL:
            for row in rows:
                yield 1, settling.work(self._platform, row)
            return
        by_runner = sorted(rows, key=lambda row: row.runner)
        for runner, group in groupby(by_runner, key=lambda row: row.runner):
            jobs = list(group)
            yield len(jobs), settling.poll(self._platform, runner, jobs)

    async def _do(self, lease: str, batch: Awaitable[None]) -> None:
        with self._leases.held(lease):
            try:
                await batch
            except Exception as error:
                # The lease expires, and another process tries again.
                logger.warning("%s: %s", self._name, error)


class _HeldLeases:
    """The leases of this process."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        #: Each lease, and the number of contexts that hold it.
        self._held: Counter[str] = Counter()
        self._interrupted: set[str] = set()

    @contextmanager
    def held(self, lease: str) -> Iterator[None]:
        """Renew the lease while the context lasts."""
        self._held[lease] += 1
        try:
            yield
        except asyncio.CancelledError:
            self._interrupted.add(lease)
            raise
        finally:
            self._held[lease] -= 1
            if not self._held[lease]:
                del self._held[lease]

    async def keep(self) -> None:
        """Renew the held leases until cancelled."""
        while True:
            await asyncio.sleep(self._seconds / RENEWALS)
            if self._held:
                try:
                    await LEASES.renew_all(self._held, now() + timedelta(seconds=self._seconds))
                except Exception as error:
                    # The database is unreachable. Each change checks its lease, so that it may expire.
                    logger.warning("following: leases are not renewed: %s", error)

    async def release_interrupted(self) -> None:
        """Release the leases whose work was cancelled, so that other processes continue it at once."""
        if self._interrupted:
            await LEASES.release_all(self._interrupted)


# -- leases ------------------------------------------------------------------------------------------


async def claim(lane: Lane, maximum: int, seconds: float, lease: str) -> list[SimulationRequest]:
    """Lease up to ``maximum`` requests that are due, oldest first, for ``seconds``."""
    # A transaction locks the whole database in SQLite, so first check outside of one.
    if not await _due(lane).exists():
        return []
    due = _due(lane).order_by("due_at").limit(maximum)
    return await LEASES.claim(due, timedelta(seconds=seconds), lease=lease)


def _due(lane: Lane) -> QuerySet[SimulationRequest]:
    moment = now()
    due = Q(due_at__lte=moment) | Q(due_at__gt=moment + HORIZON)
    free = Q(leased_until__isnull=True) | Q(leased_until__lte=moment) | Q(leased_until__gt=moment + HORIZON)
    return SimulationRequest.filter(lane.value, due, free)


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
