"""Delivering to a real receiver: at least once, signed, patiently, and never for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import enumerate as enumerate_threads

import h11
import pytest
from standardwebhooks import Webhook
from tests.core.outbox.conftest import Post, resolve_to_loopback
from tests.core.outbox.receiver import Receiver
from tests.waiting import until

from collidium import accounts, outbox, settings
from collidium.outbox.sending import LONGEST_HEAD, MAX_READ_BYTES, Sender


async def test_the_receiver_can_verify_what_it_got(post: Post, receiver: Receiver) -> None:
    secret = await post.register(receiver.url("/hook?k=v"))
    await post.announce("r1")
    assert await post.deliver() == 1
    (request,) = receiver.received
    assert request.path == "/hook?k=v"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"{receiver.host}:{receiver.port}"
    event = Webhook(secret).verify(request.body, request.headers)
    assert set(event) == {"type", "timestamp", "data"}
    assert event["type"] == "simulation.completed"
    assert event["data"] == {"request_id": "r1", "state": "completed"}
    (delivery,) = await post.log()
    assert (delivery.state, delivery.attempts, delivery.last_status) == ("delivered", 1, 204)
    assert (delivery.delivered_at, delivery.next_attempt_at) == (post.clock.moment, None)
    assert delivery.event_id == request.headers["webhook-id"]
    assert await post.deliver() == 0


async def test_what_is_refused_is_sent_again_with_the_same_id(post: Post, receiver: Receiver) -> None:
    secret = await post.register(receiver.url())
    receiver.status = lambda number: 204 if number == 3 else 503
    await post.announce("r1")
    pauses = []
    for _ in range(2):
        assert await post.deliver() == 1
        (delivery,) = await post.log()
        assert (delivery.state, delivery.last_status) == ("pending", 503)
        assert delivery.last_error == "answered 503"
        assert delivery.next_attempt_at is not None
        pauses.append(delivery.next_attempt_at - post.clock.moment)
        assert await post.deliver() == 0
        post.clock.moment = delivery.next_attempt_at
    assert timedelta(seconds=2.5) <= pauses[0] <= timedelta(seconds=5) <= pauses[1] <= timedelta(seconds=10)
    assert await post.deliver() == 1
    (delivery,) = await post.log()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("delivered", 3, None)
    assert len(set(receiver.ids)) == 1
    assert len({request.body for request in receiver.received}) == 1
    assert len({request.headers["webhook-timestamp"] for request in receiver.received}) == 3
    for request in receiver.received:
        Webhook(secret).verify(request.body, request.headers)


async def test_after_a_day_it_is_given_up(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    receiver.status = lambda _: 500
    await post.announce("r1")
    while (delivery := (await post.log())[0]).state == "pending":
        assert delivery.next_attempt_at is not None
        post.clock.moment = max(post.clock.moment, delivery.next_attempt_at)
        assert await post.deliver() == 1
    assert (delivery.state, delivery.last_error) == ("given_up", "answered 500")
    assert post.clock.moment - delivery.created_at == timedelta(days=1)
    assert 24 <= len(receiver.received) < 80
    post.clock.forward(days=1)
    assert await post.deliver() == 0


async def test_a_receiver_that_is_gone_for_good_is_left_alone(post: Post, receiver: Receiver) -> None:
    receiver.status = lambda _: 410
    delivery = await post.attempt(receiver.url())
    assert (delivery.state, delivery.last_status, delivery.next_attempt_at) == ("given_up", 410, None)


async def test_redirects_are_not_followed(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    receiver.status, receiver.headers = lambda _: 307, {"Location": receiver.url("/elsewhere")}
    await post.announce("r1")
    await post.deliver()
    assert [request.path for request in receiver.received] == ["/hook"]
    (delivery,) = await post.log()
    assert delivery.last_error == "answered 307; redirects are not followed"


async def test_cookies_are_not_kept(post: Post, receiver: Receiver) -> None:
    """They would pile up in a client that lives long, and go to others on the same host."""
    await post.register(receiver.url())
    receiver.headers = {"Set-Cookie": "session=1; Secure"}
    async with post.deliverer() as deliverer:
        for request_id in ("r1", "r2"):
            await post.announce(request_id)
            await deliverer.deliver_due()
    assert [request.headers.get("cookie") for request in receiver.received] == [None, None]


async def test_a_long_answer_is_not_read(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    receiver.status, receiver.body = lambda _: 200, b"x" * 50_000_000
    await post.announce("r1")
    await post.deliver()
    assert (await post.log())[0].state == "delivered"


@pytest.mark.parametrize(
    "flood",
    [b"HTTP/1.1 103 Early Hints\r\n\r\n" * 4000, b"HTTP/1.1 103 Early Hints\r\nX-Long: " + b"x" * 100_000],
    ids=["answers", "header"],
)
async def test_an_endless_response_head_is_abandoned(
    post: Post, receiver: Receiver, flood: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Else a receiver that sends informational answers for ever has the whole process read and parse them."""
    caplog.set_level("INFO", "collidium.outbox")
    receiver.flood = flood
    delivery = await post.attempt(receiver.url())
    assert (delivery.state, delivery.last_status, delivery.last_error) == ("pending", None, "no HTTPS answer")
    assert "no HTTPS answer (HeadTooLong)" in caplog.text


async def test_others_have_their_turn_while_an_answer_comes(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each turn of the event loop little of it is parsed, however much has arrived."""
    turns, at_read = 0, []

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    parse = h11.Connection.receive_data

    def noticed(connection: h11.Connection, data: bytes) -> None:
        at_read.append((turns, len(data)))
        parse(connection, data)

    monkeypatch.setattr(h11.Connection, "receive_data", noticed)
    await post.register(receiver.url())
    receiver.flood = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 4000
    await post.announce("r1")
    others = asyncio.create_task(count())
    await post.deliver()
    others.cancel()
    per_turn: Counter[int] = Counter()
    for turn, size in at_read:
        per_turn[turn] += size
    assert sum(per_turn.values()) == LONGEST_HEAD
    assert max(per_turn.values()) <= MAX_READ_BYTES


async def test_a_receiver_that_does_not_answer_is_left_in_time(
    post: Post, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "collidium.outbox")
    receiver.open.clear()
    delivery = await post.attempt(receiver.url("/hook?k=secret"), webhook_timeout_seconds=0.2)
    assert (delivery.state, delivery.last_status, delivery.last_error) == ("pending", None, "no HTTPS answer")
    assert "no HTTPS answer (TimeoutError" in caplog.text
    assert not any(part in caplog.text for part in (receiver.host, str(receiver.port), "secret"))


async def test_a_new_secret_signs_what_is_still_to_be_delivered(post: Post, receiver: Receiver) -> None:
    old = await post.register(receiver.url())
    await post.announce("r1")
    answer = await outbox.register(1, post.secrets, keep_url=True, rotate_secret=True)
    assert (answer.url, answer.secret == old) == (receiver.url(), False)
    assert answer.secret is not None
    await post.deliver()
    (request,) = receiver.received
    Webhook(answer.secret).verify(request.body, request.headers)


async def test_a_removed_webhook_hears_nothing_more(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    await post.announce("r1")
    await outbox.remove(1)
    await post.announce("r2")
    assert await post.deliver() == 0
    (delivery,) = await post.log()
    assert (delivery.reference, delivery.state) == ("r1", "given_up")
    assert delivery.last_error == "the webhook was removed"


async def test_a_banned_account_is_sent_nothing_until_the_ban_ends(post: Post, receiver: Receiver) -> None:
    account = await accounts.recognise("mallory", signup_grant=Decimal(0))
    await post.register(receiver.url(), account.id)
    await post.announce("r1", account_id=account.id)
    await accounts.set_banned("mallory", True)
    await post.deliver()
    (delivery,) = await post.log(account.id)
    assert (delivery.state, delivery.last_error) == ("pending", "the account is banned")
    assert receiver.received == []
    await accounts.set_banned("mallory", False)
    assert delivery.next_attempt_at is not None
    post.clock.moment = delivery.next_attempt_at
    await post.deliver()
    assert [(d.state, d.last_error) for d in await post.log(account.id)] == [("delivered", None)]


async def test_an_unreadable_secret_is_reported(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    await post.announce("r1")
    post.secrets = type(post.secrets)(["another key"])
    await post.deliver()
    (delivery,) = await post.log()
    assert delivery.state == "pending"
    assert delivery.last_error == "the signing secret cannot be read by the platform; rotate it"


async def test_attempts_that_are_cancelled_leave_no_connection(receiver: Receiver, trusted: object) -> None:
    """Whatever they were doing at that moment, the receiver sees all of their connections end."""
    sender = Sender(settings.load(webhook_private_addresses=True), resolve_to_loopback)

    async def send() -> None:
        secret, moment = "whsec_" + "c2VjcmV0" * 4, datetime.now(UTC)
        await sender.send(receiver.url(), 1, event_id="evt", body="{}", secret=secret, moment=moment)

    for milliseconds in range(0, 40, 2):
        sending = [asyncio.create_task(send()) for _ in range(8)]
        await asyncio.wait(sending, timeout=milliseconds / 1000)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
    await until(lambda: not any("process_request_thread" in thread.name for thread in enumerate_threads()))
