"""What the clients and the operator of ``perf/soak.py`` do, and what they remember of it."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium import errors
from collidium.client import AsyncClient, SimulationRequest
from collidium.client.transports import TRANSIENT
from collidium.contracts.tables import flatten
from collidium.demo import EVENTS_DIRECTORY

Result = TypeVar("Result")

CHANNELS = ("single_muon", "zmumu", "ttbar", "jets")
#: Seconds that a client tries one call again before that counts as lost.
PATIENCE = 120.0
#: The demo's real events whose truth is imported.
FIRST, STOP = 3, 5


@dataclass(slots=True)
class Order:
    """An order under its key, and what the client knows of it."""

    key: str
    channel: str
    events: int
    seed: int
    request_id: str | None = None
    cached: bool = False
    #: An answer was lost, so that the server may have taken what it later refused.
    doubtful: bool = False


@dataclass(slots=True)
class Seen:
    """What all clients saw together."""

    troubles: Counter[str] = field(default_factory=Counter)
    #: What must never be: internal errors, calls that never came through, answers that contradict others.
    faults: list[str] = field(default_factory=list)
    orders: dict[str, list[Order]] = field(default_factory=dict)
    submissions: set[str] = field(default_factory=set)
    cancelled: int = 0
    grants: int = 0
    bans: int = 0
    freezes: int = 0
    #: Seconds from an answer to its request's end, as clients who waited saw it.
    waited: list[float] = field(default_factory=list)

    @property
    def accepted(self) -> Iterator[Order]:
        return (order for orders in self.orders.values() for order in orders if order.request_id)

    def take(self, error: errors.CollidiumError) -> None:
        """Count an error, which is a fault if the server should never answer so."""
        name = type(error).__name__
        self.troubles[name] += 1
        if error.status == 500 and not isinstance(error, errors.Unreachable):
            self.faults.append(f"{name}: {error} (request {error.request_id})")


async def patiently(
    seen: Seen, call: Callable[[], Awaitable[Result]], lost: Callable[[], None] = lambda: None
) -> Result:
    """The call's result, however often the server is away; ``lost`` is called for each answer that was."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return await call()
        except TRANSIENT as error:
            seen.take(error)
            if isinstance(error, errors.Unreachable):
                lost()
            if time.monotonic() > deadline:
                seen.faults.append(f"not answered in {PATIENCE:.0f} s: {error}")
                raise
            await asyncio.sleep(random.uniform(0.1, 0.5))
        except errors.CollidiumError as error:
            seen.take(error)
            raise


class Customer:
    """An account that orders, waits, cancels, looks around and submits predictions."""

    def __init__(self, backend: str, token: str, name: str, seen: Seen, hits: pa.Table) -> None:
        self._client = AsyncClient(backend, token)
        self._name = name
        self._seen = seen
        self._hits = hits
        self._orders = seen.orders.setdefault(name, [])
        self._random = random.Random(name)

    async def live(self) -> None:
        """Do something, again and again, until cancelled."""
        actions = [self._order, self._order_and_wait, self._order_and_cancel, self._look, self._submit]
        while True:
            (action,) = self._random.choices(actions, weights=[40, 20, 20, 17, 3])
            try:
                await action()
            except errors.CollidiumError:
                pass  # counted where it was raised
            except TimeoutError as error:
                self._seen.faults.append(f"{self._name}: {error}")
            await asyncio.sleep(self._random.uniform(0.1, 1.5))

    async def settle(self) -> None:
        """Ask again about orders: what was accepted must be reported so, and as before."""
        for order in self._orders:
            if order.request_id is None and not order.doubtful:
                continue
            known = order.request_id
            try:
                answer = await self._send(order)
            except errors.CollidiumError as error:
                if known is not None:
                    self._seen.faults.append(f"{self._name}: {known} is now refused: {error}")
                continue
            if known not in (None, answer.request_id):
                self._seen.faults.append(f"{self._name}: {known} became {answer.request_id}")

    async def close(self) -> None:
        await self._client.close()

    # -- actions --------------------------------------------------------------------------------------

    async def _order(self) -> SimulationRequest:
        # One in ten is an order that others make, too, and may be answered by theirs.
        seed = self._random.randrange(5) if self._random.random() < 0.1 else self._random.getrandbits(30)
        order = Order(uuid.uuid4().hex, self._random.choice(CHANNELS), self._random.randint(1, 5), seed)
        self._orders.append(order)
        return await self._send(order)

    async def _order_and_wait(self) -> None:
        ordered = await self._order()
        started = time.monotonic()
        await self._client.wait(ordered.request_id, timeout=PATIENCE)
        if not ordered.cached:
            self._seen.waited.append(time.monotonic() - started)

    async def _order_and_cancel(self) -> None:
        ordered = await self._order()
        await asyncio.sleep(self._random.uniform(0, 3))
        await patiently(self._seen, lambda: self._client.cancel(ordered.request_id))
        self._seen.cancelled += 1

    async def _look(self) -> None:
        await patiently(self._seen, self._client.me)
        await patiently(self._seen, lambda: self._client.requests(limit=20))
        await patiently(self._seen, self._client.transactions)

    async def _submit(self) -> None:
        predictions = self._hits.replace_schema_metadata({"salt": uuid.uuid4().hex})
        receipt = await patiently(self._seen, lambda: self._client.submit("tracking", predictions))
        self._seen.submissions.add(receipt.submission_id)

    async def _send(self, order: Order) -> SimulationRequest:
        def lost() -> None:
            order.doubtful = True

        try:
            answer = await patiently(
                self._seen,
                lambda: self._client.simulate(
                    order.channel, order.events, 0, seed=order.seed, idempotency_key=order.key
                ),
                lost,
            )
        except asyncio.CancelledError:
            # Its turn is over while the order is on its way: the server may have taken it.
            lost()
            raise
        order.request_id, order.cached = answer.request_id, answer.cached
        return answer


async def operate(client: AsyncClient, seen: Seen) -> None:
    """Grant, ban, unban, freeze and unfreeze, until cancelled."""
    while True:
        await asyncio.sleep(random.uniform(1, 4))
        name = random.choice(list(seen.orders))
        try:
            match random.choices(["grant", "ban", "freeze"], weights=[3, 2, 1]):
                case ["grant"]:
                    await client.admin_grant(name, Decimal(1), "soak")
                    seen.grants += 1
                case ["ban"]:
                    async with undone(seen, client.admin_ban, name):
                        await client.admin_ban(name)
                        seen.bans += 1
                case _:
                    async with undone(seen, client.admin_freeze):
                        await client.admin_freeze()
                        seen.freezes += 1
        except errors.CollidiumError as error:
            seen.take(error)


@asynccontextmanager
async def undone(
    seen: Seen, undo: Callable[..., Awaitable[object]], *arguments: object
) -> AsyncIterator[None]:
    """For a second what the context begins, then not any more: also when the answer was lost."""
    try:
        yield
        await asyncio.sleep(1)
    finally:
        await asyncio.shield(patiently(seen, lambda: undo(*arguments, False)))


def oracle() -> pa.Table:
    """Perfect predictions of the demo's events."""
    hits = flatten(pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet"), ["hit_id", "particle_id"])
    events = hits.column("event_id").to_numpy()
    hits = hits.filter(pa.array(np.logical_and(events >= FIRST, events < STOP)))
    return hits.set_column(2, "track_id", hits["particle_id"].cast(pa.int64()))
