"""Random interleavings of everything that touches requests and credits: the books are right after each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar
from uuid import uuid4

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.core.simulations.conftest import (
    DELIVERY,
    ORDER,
    OpenPlatform,
    assert_sound,
    balance,
    sign_up,
)
from tests.core.simulations.scripted import COMPLETED, Scripted
from tests.counts import LONG
from tortoise.timezone import now

from collidium import accounts, operations, records, simulations
from collidium.contracts.runner import JobState, JobStatus, RunnerUnavailable
from collidium.errors import CollidiumError, Conflict, Forbidden, NotFound, Unavailable
from collidium.platform import Platform
from collidium.simulations import follower, settling
from collidium.simulations.follower import Lane
from collidium.simulations.models import SimulationRequest

RUNNING = JobStatus(JobState.RUNNING)
FAILED = JobStatus(JobState.FAILED, Decimal("0.001"), "it broke")
STOPPED = JobStatus(JobState.CANCELLED, Decimal("0.001"), "it broke")
PEOPLE = 2
_serial = count()
T = TypeVar("T")


class Directed(Scripted):
    """Each job runs until a test sets how it ends. Nothing is published."""

    is_mock = True

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[str, JobStatus] = {}
        self.away = False

    async def poll(self, handle: str) -> JobStatus:
        if self.away:
            raise RunnerUnavailable("away")
        if handle in self.ends:
            return self.ends[handle]
        return STOPPED if handle in self.cancelled else RUNNING


#: An operation: its name and what it is done with.
Operation = tuple[Any, ...]

person = st.integers(0, PEOPLE - 1)
#: One of the requests so far, counted from the newest.
which = st.integers(0, 3)
keys = st.sampled_from([None, None, "a", "b"])
#: What makes things hard is done less often than it is undone.
seldom = st.sampled_from([True, False, False])
#: How often each is done, and what with.
OPERATIONS: Final[Mapping[str, tuple[int, Sequence[st.SearchStrategy[Any]]]]] = {
    "submit": (8, [person, st.integers(0, 2), st.booleans(), keys]),
    "turn": (8, []),
    "cancel": (3, [person, which]),
    "end": (5, [which, st.sampled_from([COMPLETED, COMPLETED, FAILED, STOPPED])]),
    "away": (1, [seldom]),
    "late": (1, [which]),
    "die": (2, [st.sampled_from(Lane)]),
    "ban": (1, [person, seldom]),
    "freeze": (1, [seldom]),
    "grant": (2, [person, st.sampled_from(["1", "-9.998", "-0.001"])]),
}
operation = st.sampled_from(
    [name for name, (weight, _) in OPERATIONS.items() for _ in range(weight)]
).flatmap(lambda name: st.tuples(st.just(name), *OPERATIONS[name][1]))
RESTART: Final[list[Operation]] = [("restart",)]
#: What is done at once, one after the other.
programs = st.lists(st.lists(operation, min_size=2, max_size=5) | st.just(RESTART), min_size=10, max_size=25)


async def answer(call: Awaitable[T]) -> T | CollidiumError:
    """What a call returns, or why it is refused."""
    try:
        return await call
    except CollidiumError as error:
        return error


@dataclass
class World:
    """Two accounts of one example on a database that all examples share."""

    runner: Directed
    platform: Platform
    names: list[str]
    people: list[accounts.AccountView] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    frozen: bool = False
    banned: set[int] = field(default_factory=set)

    async def do(self, operation: Operation, at_once: Sequence[Operation]) -> None:
        """One operation; what may be refused is."""
        name, *arguments = operation
        if name == "submit":
            await self.submit(*arguments, at_once)
        else:
            await getattr(self, name)(*arguments)

    async def submit(
        self, person: int, seed: int, private: bool, key: str | None, at_once: Sequence[Operation]
    ) -> None:
        options = replace(DELIVERY, private=private, idempotency_key=key)
        account = self.people[person]
        ordered = structs.replace(ORDER, events=100, seed=self.seed(seed))
        placed = await answer(simulations.place(self.platform, account, ordered, options))
        if isinstance(placed, CollidiumError):
            assert not isinstance(placed, Unavailable) or self.frozen or ("freeze", True) in at_once
            assert not isinstance(placed, Forbidden) or self.touched(person, True, at_once)
            return
        again = placed.request_id in self.ids
        assert person not in self.banned or ("ban", person, False) in at_once
        assert again or placed.cached or not self.frozen or ("freeze", False) in at_once
        assert placed.hub_username == account.hub_username or (placed.cached and not placed.private)
        assert (await simulations.find(placed.request_id, account.id)).request_id == placed.request_id
        if placed.request_id not in self.ids:
            self.ids.append(placed.request_id)

    def seed(self, seed: int) -> int:
        """Examples share a database and must not answer each other's orders."""
        return int(self.names[0].removeprefix("a")) * 10 + seed

    def touched(self, person: int, banned: bool, at_once: Sequence[Operation]) -> bool:
        return person in self.banned or ("ban", person, banned) in at_once

    async def cancel(self, person: int, which: int) -> None:
        if request_id := self.newest(which):
            result = await answer(simulations.cancel(self.platform, request_id, self.people[person]))
            if await self.owner(request_id) == self.names[person]:
                assert isinstance(result, records.SimulationRequest | Conflict)
            else:
                assert isinstance(result, NotFound | Forbidden)

    async def owner(self, request_id: str) -> str:
        return (await simulations.find(request_id)).hub_username

    async def end(self, which: int, how: JobStatus) -> None:
        if request_id := self.newest(which):
            self.runner.ends.setdefault(request_id, how)

    async def away(self, away: bool) -> None:
        self.runner.away = away

    async def late(self, which: int) -> None:
        await SimulationRequest.filter(request_id=self.newest(which), step__not="").update(deadline_at=now())

    async def turn(self) -> None:
        """What the follower does once, with the time between two looks gone."""
        await SimulationRequest.filter(lease="", step__not="").update(due_at=now())
        for lane in Lane:
            rows = await follower.claim(lane, 3, 60, uuid4().hex)
            if lane is Lane.POLL and rows:
                await settling.poll(self.platform, self.runner.name, rows)
            elif lane is not Lane.POLL:
                for row in rows:
                    await settling.work(self.platform, row)

    async def die(self, lane: Lane) -> None:
        """A process takes what is due and is never heard of again; then its lease runs out."""
        await SimulationRequest.filter(lease="", step__not="").update(due_at=now())
        for row in await follower.claim(lane, 1, 60, uuid4().hex):
            await SimulationRequest.filter(lease=row.lease).update(leased_until=now())

    async def ban(self, person: int, banned: bool) -> None:
        await operations.ban(self.names[person], banned, actor="test", http_request_id="test")

    async def freeze(self, frozen: bool) -> None:
        await operations.freeze(frozen, actor="test", http_request_id="test")

    async def grant(self, person: int, delta: str) -> None:
        reference = f"test{next(_serial)}"
        granted = operations.grant(
            self.names[person], Decimal(delta), "", actor="test", http_request_id=reference
        )
        assert isinstance(await answer(granted), records.Granted | Conflict)

    def newest(self, which: int) -> str | None:
        return self.ids[-1 - which] if which < len(self.ids) else None

    async def settle(self) -> None:
        """Remember what is decided now that nothing is under way."""
        self.frozen = await operations.is_frozen()
        self.banned = {n for n, name in enumerate(self.names) if (await accounts.find(name)).banned}

    async def follow_to_the_end(self) -> list[records.SimulationRequest]:
        self.runner.away = False
        for request_id in self.ids:
            self.runner.ends.setdefault(request_id, FAILED)
        while await SimulationRequest.filter(step__not="", request_id__in=self.ids).exists():
            await self.turn()
        return [await simulations.find(request_id) for request_id in self.ids]


async def assert_books(world: World) -> None:
    """Every credit that moved has its request, and every request its credits."""
    await assert_sound()
    rows = {row.request_id: row for row in await SimulationRequest.filter(request_id__in=world.ids)}
    charges, refunds = {}, {}
    for person, name in zip(world.people, world.names, strict=True):
        entries = await accounts.entries(person.id, limit=1000)
        charges |= {e.reference: -e.delta for e in entries if e.reason == "simulation_charge"}
        refunds |= {e.reference: e.delta for e in entries if e.reason == "simulation_refund"}
        assert await balance(name) >= 0
    assert charges == {request_id: row.credits_charged for request_id, row in rows.items()}
    assert refunds == {key: row.credits_refunded for key, row in rows.items() if row.credits_refunded}
    for row in rows.values():
        consumed = {
            "completed": min(row.node_hours, row.credits_charged),
            "cancelled": min(row.node_hours, row.credits_charged) if row.cancel_requested_at else Decimal(0),
        }.get(row.state, Decimal(0))
        if not row.step:
            assert row.credits_refunded == row.credits_charged - consumed


@settings(
    max_examples=60 if LONG else 5,
    # To find the shortest program takes minutes: a failure shows the first that was found.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(program=programs)
async def test_whatever_happens_at_once_the_books_are_right(
    open_platform: OpenPlatform, program: list[list[Operation]]
) -> None:
    number = next(_serial)
    names = [f"a{number}", f"b{number}"]
    runner = Directed()
    opened = partial(open_platform, runner, burst_requests=1000, unfinished_requests=4)
    async with AsyncExitStack() as life:
        world = World(runner, await life.enter_async_context(opened()), names)
        await operations.freeze(False, actor="test", http_request_id="test")
        world.people = [await sign_up(name) for name in names]
        for at_once in program:
            if at_once == RESTART:
                await life.aclose()
                world.platform = await life.enter_async_context(opened())
            else:
                await asyncio.gather(*(world.do(operation, at_once) for operation in at_once))
            await world.settle()
            await assert_books(world)
        requests = await world.follow_to_the_end()
        assert {request.state for request in requests} <= {"completed", "failed", "cancelled"}
        await assert_books(world)
