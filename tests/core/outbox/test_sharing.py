"""Several who deliver, slow receivers, and processes that are killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.core.outbox.conftest import HOST, Post
from tests.core.outbox.receiver import Receiver, receiving
from tests.waiting import until

from collidium import database, settings
from collidium.database import transactional
from collidium.outbox import deliveries, delivering
from collidium.outbox.deliverer import Deliverer
from collidium.outbox.deliveries import Attempt
from collidium.outbox.models import Delivery


@asynccontextmanager
async def running(deliverer: Deliverer, seconds: float = 30) -> AsyncIterator[None]:
    """The deliverer's loop runs in the background; what is under way then has ``seconds`` to end."""
    loop = asyncio.create_task(deliverer.run())
    try:
        yield
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        await deliverer.stop(seconds)


async def test_two_who_deliver_at_once_deliver_each_once(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    await post.announce(*(f"r{n}" for n in range(40)))
    async with post.deliverer() as one, post.deliverer() as other:
        shares = await asyncio.gather(one.deliver_due(), other.deliver_due())
    # Each may stop early while the other holds the rest.
    await post.deliver()
    assert len(receiver.ids) == len(set(receiver.ids)) == 40
    assert sum(shares) <= 40
    assert {(d.state, d.attempts) for d in await post.log()} == {("delivered", 1)}


async def test_what_one_is_taking_is_not_taken_by_another(
    post: Post, receiver: Receiver, database_kind: str
) -> None:
    await post.register(receiver.url())
    await post.announce("r1")
    held, release = asyncio.Event(), asyncio.Event()

    async def take() -> list[int]:
        taken = await deliveries.take(post.clock(), timedelta(minutes=1), list)
        return [attempt.row.id for attempt in taken]

    @transactional
    async def take_slowly() -> list[int]:
        ids = await take()
        held.set()
        await release.wait()
        return ids

    slow = asyncio.create_task(take_slowly())
    await held.wait()
    if database_kind == "sqlite":
        release.set()  # it lets no other in before its end
    try:
        async with asyncio.timeout(30):
            assert await take() == []
    finally:
        release.set()
        assert len(await slow) == 1


async def test_a_slow_receiver_delays_no_other(post: Post, receiver: Receiver, authority: trustme.CA) -> None:
    receiver.open.clear()
    with receiving(authority, HOST) as quick:
        await post.register(receiver.url(), account_id=1)
        await post.register(quick.url(), account_id=2)
        await post.announce(*(f"slow{n}" for n in range(300)), account_id=1)
        await post.announce(*(f"quick{n}" for n in range(3)), account_id=2)
        async with post.deliverer(webhook_timeout_seconds=30) as deliverer, running(deliverer):
            await until(lambda: len(quick.received) == 3)
            assert len(receiver.received) <= 1
            await Delivery.filter(state="pending", attempts=0).update(state="given_up")
            receiver.open.set()
            await until(lambda: len(receiver.received) == 1)


async def test_the_deliverer_is_woken_after_the_commit(
    post: Post, authority: trustme.CA, trusted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collidium.outbox.deliverer.IDLE_SECONDS", 3600)
    chosen = settings.load(webhook_private_addresses=True)
    looked = asyncio.Event()
    take = deliveries.take

    async def noticed(*args: Any, **options: Any) -> list[Attempt]:
        taken = await take(*args, **options)
        looked.set()
        return taken

    monkeypatch.setattr(deliveries, "take", noticed)
    with receiving(authority, "127.0.0.1") as receiver:
        await post.register(receiver.url())
        async with delivering(chosen, post.secrets):
            await looked.wait()  # in vain: only a notification makes it look again
            await post.announce("r1")
            await until(lambda: len(receiver.received) == 1)


async def test_a_killed_process_leaves_its_deliveries_to_another(
    connected: str, post: Post, authority: trustme.CA, trusted: Path
) -> None:
    with receiving(authority, "127.0.0.1") as receiver:
        receiver.open.clear()
        await post.register(receiver.url())
        await post.announce("r1")
        async with post.killed_deliverer(connected):
            await until(lambda: len(receiver.received) == 1)
        receiver.open.set()
        assert await post.deliver() == 0  # its lease still holds
        (delivery,) = await post.log()
        assert (delivery.state, delivery.attempts) == ("pending", 1)
        assert delivery.next_attempt_at is not None
        post.clock.moment = delivery.next_attempt_at
        assert await post.deliver() == 1
    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    (delivery,) = await post.log()
    assert (delivery.state, delivery.attempts) == ("delivered", 2)


async def test_a_late_failure_does_not_undo_a_later_delivery(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    await post.announce("r1")
    receiver.open.clear()
    async with post.deliverer(webhook_timeout_seconds=1) as slow, post.deliverer() as other:
        late = asyncio.create_task(slow.deliver_due())
        await until(lambda: len(receiver.received) == 1)
        post.clock.forward(hours=1)  # its lease is over
        second = asyncio.create_task(other.deliver_due())
        await until(lambda: len(receiver.received) == 2)
        await late  # it waited in vain
        assert [(d.state, d.attempts, d.last_error) for d in await post.log()] == [("pending", 2, None)]
        receiver.open.set()
        await second
    assert [(d.state, d.attempts) for d in await post.log()] == [("delivered", 2)]


async def test_a_clock_that_was_set_back_does_not_stop_deliveries(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    receiver.status = lambda number: 500 if number == 1 else 204
    await post.announce("r1")
    post.clock.forward(hours=20)
    await post.deliver()
    post.clock.moment -= timedelta(hours=20)
    await post.deliver()
    assert [d.state for d in await post.log()] == ["delivered"]


async def test_deliveries_survive_a_database_outage(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("collidium.outbox.deliverer.IDLE_SECONDS", 0.01)
    await post.register(receiver.url())
    await post.announce("r1")
    rename = database.connection().execute_script
    await rename("ALTER TABLE webhook_deliveries RENAME TO away")
    async with post.deliverer() as deliverer, running(deliverer):
        await until(lambda: "due work cannot be read" in caplog.text)
        await rename("ALTER TABLE away RENAME TO webhook_deliveries")
        await until(lambda: len(receiver.received) == 1)
    assert [d.state for d in await post.log()] == ["delivered"]


async def test_a_process_that_ends_leaves_a_slow_receiver_to_others(
    post: Post, authority: trustme.CA, trusted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collidium.outbox.deliverer.ENDING_SECONDS", 0.01)
    with receiving(authority, "127.0.0.1") as receiver:
        receiver.open.clear()
        await post.register(receiver.url())
        await post.announce("r1")
        async with delivering(settings.load(webhook_private_addresses=True), post.secrets):
            await until(lambda: len(receiver.received) == 1)
        (delivery,) = await post.log()
        assert (delivery.state, delivery.attempts) == ("pending", 1)
