"""Many accounts whose receivers stay silent, and the accounts whose receivers answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from tests.core.outbox.conftest import HOST, Post
from tests.core.outbox.receiver import Receiver
from tests.core.outbox.test_sharing import running
from tests.waiting import until

from collidium.outbox import deliveries, turns
from collidium.outbox.models import Delivery
from collidium.outbox.sending import MAX_PER_ADDRESS

ATTACKERS = range(100, 116)


def silent_address(account_id: int) -> str:
    return f"127.0.1.{account_id}"


async def resolve(host: str, port: int, account_id: int | None) -> Sequence[str]:
    """``silent<n>.example`` are hosts of their own; all ``shared<n>.example`` are where the receiver is."""
    if host.startswith("silent"):
        return [silent_address(int(host.removeprefix("silent").removesuffix(".example")))]
    return ["127.0.0.1"]


def port_of(listening: socket.socket) -> int:
    port: int = listening.getsockname()[1]
    return port


def has_ended(connection: socket.socket) -> bool:
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A socket at the receiver's address that says nothing; at its port the silent addresses do as well."""
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        for account_id in ATTACKERS:
            stack.enter_context(
                socket.create_server((silent_address(account_id), port_of(first)), backlog=64)
            )
        yield first


async def attack(post: Post, port: int, host: str = "silent{}.example") -> None:
    """Sixteen accounts have ten deliveries each to a host that does not answer."""
    for account_id in ATTACKERS:
        await post.register(f"https://{host.format(account_id)}:{port}/", account_id)
        await post.announce(*(f"a{account_id}-{n}" for n in range(10)), account_id=account_id)


async def attempts_of(account_id: int, post: Post) -> int:
    return sum(delivery.attempts for delivery in await post.log(account_id))


async def test_silent_receivers_of_many_accounts_delay_no_other(
    post: Post, receiver: Receiver, silent: socket.socket
) -> None:
    await attack(post, port_of(silent))
    await post.register(receiver.url(), account_id=1)
    await post.announce("innocent", account_id=1)
    async with (
        post.deliverer(resolve, webhook_timeout_seconds=60) as deliverer,
        running(deliverer, seconds=0),
    ):
        await until(lambda: len(receiver.received) == 1, seconds=10)
        assert [await attempts_of(account, post) for account in ATTACKERS] == [1] * len(ATTACKERS)


async def test_silent_names_of_an_address_do_not_delay_a_good_receiver(
    post: Post, receiver: Receiver, silent: socket.socket
) -> None:
    """As at a provider whose customers share addresses: whose receiver answered before has its own places."""
    await post.register(receiver.url(), account_id=1)
    await post.announce("first", account_id=1)
    async with post.deliverer(resolve, webhook_timeout_seconds=60) as deliverer:
        await deliverer.deliver_due()
        await attack(post, port_of(silent), "shared{}.example")
        await post.announce("second", account_id=1)
        async with running(deliverer, seconds=0):
            await until(lambda: len(receiver.received) == 2, seconds=10)


async def test_silent_names_of_one_address_share_few_connections(
    post: Post, trusted: Path, silent: socket.socket
) -> None:
    """Names cost nothing, and who has the address may have asked for nothing."""
    silent.setblocking(False)
    await attack(post, port_of(silent), "shared{}.example")
    with ExitStack() as connections:
        accepted, still_open = 0, set[socket.socket]()
        async with post.deliverer(resolve, webhook_timeout_seconds=3) as deliverer:
            delivering = asyncio.create_task(deliverer.deliver_due())

            def all_came() -> bool:
                nonlocal accepted
                with suppress(BlockingIOError):
                    while True:
                        connection = connections.enter_context(silent.accept()[0])
                        connection.setblocking(False)
                        still_open.add(connection)
                        accepted += 1
                still_open.difference_update([each for each in still_open if has_ended(each)])
                assert len(still_open) <= MAX_PER_ADDRESS
                return accepted == len(ATTACKERS)

            await until(all_came)
            await delivering


async def test_what_waits_for_a_failing_receiver_is_not_tried(post: Post, receiver: Receiver) -> None:
    """One delivery tries for all of them; once it is taken the others follow at once."""
    receiver.status = lambda number: 503 if number <= 3 else 204
    await post.register(receiver.url())
    await post.announce(*(f"r{n}" for n in range(20)))
    async with post.deliverer() as deliverer:
        for attempt in range(1, 4):
            assert await deliverer.deliver_due() == 1
            assert len(receiver.received) == attempt
            assert len(set(receiver.ids)) == 1
            first = min(delivery.next_attempt_at or post.clock() for delivery in await post.log())
            assert first > post.clock()
            tried = [delivery for delivery in await post.log() if delivery.attempts]
            assert len(tried) == 1
            assert tried[0].next_attempt_at is not None
            post.clock.moment = tried[0].next_attempt_at
        await deliverer.deliver_due()
    assert {delivery.state for delivery in await post.log()} == {"delivered"}
    assert len(receiver.received) == 23


async def test_each_failure_puts_off_what_is_due(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where more is due than is moved at once."""
    monkeypatch.setattr(deliveries, "MAX_MOVED", 5)
    await post.register(receiver.url())
    await post.announce(*(f"r{n}" for n in range(12)))
    now = post.clock()
    for seconds in (60, 70, 80):
        until_then = now + timedelta(seconds=seconds)
        await deliveries.put_off(turns.Receiver(1, HOST), now, until_then)
    assert not await Delivery.filter(next_attempt_at__lte=now).exists()


async def test_another_accounts_failing_receiver_causes_no_wait(post: Post, receiver: Receiver) -> None:
    """Both send to one host, as customers of one provider do."""
    receiver.status = lambda number: 503 if receiver.received[number - 1].path == "/failing" else 204
    await post.register(receiver.url("/failing"), account_id=1)
    await post.register(receiver.url("/working"), account_id=2)
    await post.announce(*(f"f{n}" for n in range(5)), account_id=1)
    await post.announce(*(f"w{n}" for n in range(5)), account_id=2)
    await post.deliver()
    assert [await attempts_of(account, post) for account in (1, 2)] == [1, 5]


async def test_first_deliveries_are_seen_behind_a_long_backlog(
    post: Post, receiver: Receiver, silent: socket.socket
) -> None:
    """Thousands that are due for longer hide nothing from the process that chooses."""
    await post.register(f"https://{HOST}:{port_of(silent)}/", account_id=1)
    await post.announce("old", account_id=1)
    (old,) = await Delivery.filter(account_id=1)
    await Delivery.bulk_create(
        [
            Delivery(
                event_id=old.event_id,
                account_id=account_id,
                host=f"h{n}.example",
                url=f"https://h{n}.example:{port_of(silent)}/",
                created_at=old.created_at,
                next_attempt_at=old.created_at,
            )
            for account_id in (1, 2, 3)
            for n in range(700)
        ]
    )
    await post.register(receiver.url(), account_id=4)
    await post.announce("new", account_id=4)
    async with (
        post.deliverer(resolve, webhook_timeout_seconds=60) as deliverer,
        running(deliverer, seconds=0),
    ):
        await until(lambda: len(receiver.received) == 1, seconds=10)
