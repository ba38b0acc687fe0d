"""Orders: what answers them, what refuses them, and in which order that is decided."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs
from tests.core.simulations.conftest import (
    DELIVERY,
    GRANT,
    ORDER,
    OpenPlatform,
    assert_sound,
    balance,
    ended,
    order,
    sign_up,
)
from tests.core.simulations.scripted import Scripted
from tests.waiting import eventually_async
from tortoise.backends.sqlite.client import SqliteClient

from collidium import accounts, operations, outbox, simulations
from collidium.accounts import idempotency
from collidium.database import connection
from collidium.errors import (
    CollidiumError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    PaymentRequired,
    TooManyRequests,
    Unavailable,
)
from collidium.platform import Platform
from collidium.simulations import DeliveryOptions, Order

#: More than any account has.
EXPENSIVE = Order("ttbar", events=10_000, pileup=200)


async def freeze(frozen: bool) -> None:
    await operations.freeze(frozen, actor="test", http_request_id="test")


async def completed(platform: Platform, name: str, ordered: Order = ORDER, **options: bool) -> str:
    placed = await simulations.place(platform, await sign_up(name), ordered, replace(DELIVERY, **options))
    async with simulations.following(platform):
        return (await ended(placed.request_id)).request_id


async def test_an_order_is_charged_and_queued(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        alice = await sign_up("alice")
        placed = await simulations.place(platform, alice, ORDER, DELIVERY)
        assert (placed.cached, placed.state) == (False, "queued")
        assert placed.credits_charged == Decimal("0.003")
        assert await balance("alice") == GRANT - Decimal("0.003")
        (charge, _) = await accounts.entries(alice.id, limit=5)
        assert (charge.reason, charge.reference) == ("simulation_charge", placed.request_id)
        await assert_sound()


async def test_an_order_takes_few_round_trips(
    open_platform: OpenPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    """Besides BEGIN and COMMIT; on SQLite, where statements are not joined, all in one call of its thread."""
    async with open_platform() as platform:
        alice = await sign_up("alice")
        with caplog.at_level(logging.DEBUG, "tortoise.db_client"):
            await simulations.place(platform, alice, ORDER, replace(DELIVERY, idempotency_key="one"))
        client = connection()
        if isinstance(client, SqliteClient):
            assert len(caplog.records) <= 11
            assert await one_call(
                client, simulations.place(platform, alice, structs.replace(ORDER, seed=2), DELIVERY)
            )
        else:
            assert len(caplog.records) <= 3


async def one_call(client: SqliteClient, placing: Coroutine[Any, Any, object]) -> bool:
    """Whether that sends the database's thread one message."""
    queue, messages = client._connection._tx, []

    def put_nowait(message: Any) -> None:
        messages.append(message)
        queue.put_nowait(message)

    client._connection._tx = SimpleNamespace(put_nowait=put_nowait)
    await placing
    client._connection._tx = queue
    return len(messages) == 1


async def test_a_completed_request_answers_the_same_order_of_all(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        first = await completed(platform, "alice")
        bob = await sign_up("bob")
        with pytest.raises(NotFound):
            await simulations.find(first, bob.id)
        await freeze(True)
        placed = await simulations.place(platform, bob, ORDER, DELIVERY)
        assert (placed.cached, placed.request_id) == (True, first)
        assert placed.credits_charged == 0
        assert await balance("bob") == GRANT
        assert (await simulations.find(first, bob.id)).state == "completed"
        with pytest.raises(Forbidden):
            await simulations.cancel(platform, first, bob)
        assert (await simulations.find(first)).credits_charged > 0


@pytest.mark.parametrize("seed", [43, 2**127 + ORDER.seed])
async def test_another_seed_is_another_order(seed: int, open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        await completed(platform, "alice")
        placed = await order(platform, await sign_up("bob"), structs.replace(ORDER, seed=seed))
        assert (await simulations.find(placed)).seed == seed


async def test_a_long_seed_is_answered_to_its_last_digit(open_platform: OpenPlatform) -> None:
    ordered = structs.replace(ORDER, seed=2**128 - 1)
    async with open_platform() as platform:
        first = await completed(platform, "alice", ordered)
        bob = await sign_up("bob")
        assert (await simulations.place(platform, bob, ordered, DELIVERY)).request_id == first
        other = await simulations.place(platform, bob, structs.replace(ordered, seed=2**128 - 2), DELIVERY)
        assert not other.cached


async def test_a_private_request_answers_its_owner_alone(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        first = await completed(platform, "alice", private=True)
        assert await order(platform, await sign_up("bob")) != first
        again = await simulations.place(platform, await sign_up("alice"), ORDER, DELIVERY)
        assert (again.cached, again.request_id) == (True, first)


async def test_requests_of_banned_accounts_answer_no_order(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        first = await completed(platform, "alice")
        await operations.ban("alice", True, actor="test", http_request_id="test")
        second = await completed(platform, "bob")
        assert second != first
        again = await simulations.place(platform, await sign_up("carol"), ORDER, DELIVERY)
        assert (again.cached, again.request_id) == (True, second)


async def test_a_repeated_key_is_answered_without_the_webhooks_host(
    open_platform: OpenPlatform,
) -> None:
    notified = replace(DELIVERY, idempotency_key="once", webhook_url="https://localhost/hook")
    async with open_platform(webhook_private_addresses=True) as platform:
        alice = await sign_up("alice")
        with pytest.raises(InvalidInput, match="signing secret"):
            await simulations.place(platform, alice, ORDER, notified)
        await outbox.register(alice.id, platform.secrets)
        first = await simulations.place(platform, alice, ORDER, notified)
    async with open_platform() as platform:
        assert (await simulations.place(platform, alice, ORDER, notified)) == first
        with pytest.raises(InvalidInput, match="webhook_url"):
            await simulations.place(platform, alice, ORDER, replace(notified, idempotency_key="twice"))


async def test_only_so_many_keys_are_remembered(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "KEYS_KEPT", 3)
    async with open_platform() as platform:
        await completed(platform, "alice")
        bob = await sign_up("bob")
        for number in range(10):
            keyed = replace(DELIVERY, idempotency_key=f"key{number}")
            assert (await simulations.place(platform, bob, ORDER, keyed)).cached
        kept = await idempotency.IdempotencyKey.all().order_by("id")
        assert [key.key for key in kept] == ["key7", "key8", "key9"]


async def test_what_completed_too_long_ago_answers_nothing(open_platform: OpenPlatform) -> None:
    async with open_platform(dedup_days=0) as platform:
        first = await completed(platform, "alice")
        assert await order(platform, await sign_up("alice")) != first


async def test_a_mock_is_no_answer_to_a_real_order(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        first = await completed(platform, "alice")
    async with open_platform(Scripted()) as platform:
        assert await order(platform, await sign_up("alice")) != first


async def test_a_repeated_key_gets_the_first_answer(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        alice = await sign_up("alice")
        keyed = replace(DELIVERY, idempotency_key="once")
        answers = await asyncio.gather(*(simulations.place(platform, alice, ORDER, keyed) for _ in range(6)))
        assert len({answer.request_id for answer in answers}) == 1
        assert await balance("alice") == GRANT - Decimal("0.003")
        with pytest.raises(Conflict, match="another request"):
            await simulations.place(platform, alice, structs.replace(ORDER, seed=1), keyed)
        other = await simulations.place(platform, await sign_up("bob"), ORDER, keyed)
        assert other.request_id != answers[0].request_id


async def test_keys_of_0_4_0_stand_for_the_same_orders(open_platform: OpenPlatform) -> None:
    """So that an order is not placed again whose answer was lost in an upgrade."""
    fingerprints = {
        "d795100e2447997e89aa59bbb7a4109102c602c9d6e251de33fa1dfc21b271fe": Order("ttbar", 10, 0),
        "0f72c0618109666235a380a01a77af8d1949b964ad1faa5f9aca31573809a57b": Order(
            "ttbar", 10, 40, 1, "misalign=10um, smear=1.20"
        ),
    }
    async with open_platform() as platform:
        alice = await sign_up("alice")
        for fingerprint, ordered in fingerprints.items():
            await simulations.place(platform, alice, ordered, replace(DELIVERY, idempotency_key=fingerprint))
        keys = await idempotency.IdempotencyKey.all()
    assert {row.key: row.question for row in keys} == {each: each for each in fingerprints}


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 129, "line\nbreak"])
async def test_a_key_that_is_none_is_refused(key: str, open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        with pytest.raises(InvalidInput, match="Idempotency-Key"):
            await simulations.place(
                platform, await sign_up("alice"), ORDER, replace(DELIVERY, idempotency_key=key)
            )


async def test_what_is_refused_leaves_nothing(open_platform: OpenPlatform) -> None:
    """In the order of the specification: limits, then the kill switch, then credits."""
    async with open_platform(burst_requests=1) as platform:
        alice, bob = await sign_up("alice"), await sign_up("bob")

        async def refusal(account: accounts.AccountView, ordered: Order) -> type[CollidiumError]:
            before = await balance(account.hub_username)
            with pytest.raises(CollidiumError) as caught:
                await simulations.place(platform, account, ordered, DELIVERY)
            assert await balance(account.hub_username) == before
            return caught.type

        assert await refusal(alice, EXPENSIVE) is accounts.InsufficientCredits
        await freeze(True)
        assert await refusal(alice, EXPENSIVE) is Unavailable
        assert await refusal(alice, Order("tbar", 1, 0)) is InvalidInput
        await freeze(False)
        await order(platform, alice)
        await freeze(True)
        assert await refusal(alice, EXPENSIVE) is TooManyRequests
        await operations.ban("bob", True, actor="test", http_request_id="test")
        assert await refusal(bob, ORDER) is Forbidden
        assert len(await simulations.list_requests(limit=10)) == 1
        await assert_sound()


async def test_a_token_that_cannot_publish_orders_nothing_real(open_platform: OpenPlatform) -> None:
    reading = replace(DELIVERY, token_is_read_only=True)
    async with open_platform() as platform:
        assert not (await simulations.place(platform, await sign_up("alice"), ORDER, reading)).cached
    async with open_platform(Scripted()) as platform:
        with pytest.raises(Forbidden, match="read-only"):
            await simulations.place(platform, await sign_up("alice"), ORDER, reading)
        await assert_sound()


async def test_limits_are_exact_when_orders_come_at_once(open_platform: OpenPlatform) -> None:
    async with open_platform(burst_requests=4, unfinished_requests=3) as platform:
        for name, most in (("alice", 3), ("bob", 3)):
            account = await sign_up(name)
            orders = [structs.replace(ORDER, seed=seed) for seed in range(8)]
            outcomes = await asyncio.gather(
                *(simulations.place(platform, account, one, DELIVERY) for one in orders),
                return_exceptions=True,
            )
            refused = [one for one in outcomes if isinstance(one, TooManyRequests)]
            assert (len(outcomes) - len(refused), len(refused)) == (most, 8 - most)
        await assert_sound()


async def test_a_month_that_is_used_up_takes_no_more(open_platform: OpenPlatform) -> None:
    async with open_platform(monthly_node_hours=Decimal("0.008")) as platform:
        alice = await sign_up("alice")
        outcomes = await asyncio.gather(
            *(simulations.place(platform, alice, structs.replace(ORDER, seed=n), DELIVERY) for n in range(5)),
            return_exceptions=True,
        )
        refused = [one for one in outcomes if isinstance(one, TooManyRequests)]
        assert len(refused) == 3
        assert "month" in refused[0].detail
        assert await balance("alice") == GRANT - 2 * Decimal("0.003")
        await assert_sound()


async def test_credits_are_never_spent_twice(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        alice = await sign_up("alice")
        outcomes = await asyncio.gather(
            *(simulations.place(platform, alice, Order("ttbar", 40, 50, n), DELIVERY) for n in range(8)),
            return_exceptions=True,
        )
        # 2.083 credits each: four fit into the grant.
        assert sum(isinstance(one, PaymentRequired) for one in outcomes) == 4
        assert await balance("alice") == GRANT - 4 * Decimal("2.083")
        await assert_sound()


async def test_the_token_is_kept_encrypted_and_only_while_it_is_needed(open_platform: OpenPlatform) -> None:

    async def kept() -> list[str | None]:
        _, rows = await connection().execute_query("SELECT encrypted_token FROM simulation_requests")
        return [row["encrypted_token"] for row in rows]

    async with open_platform(Scripted()) as platform:
        request_id = await order(platform, alice := await sign_up("alice"))
        (token,) = await kept()
        assert token is not None
        assert DELIVERY.token not in token
        assert platform.secrets.decrypt(token) == DELIVERY.token
        await simulations.cancel(platform, request_id, alice)
        async with simulations.following(platform):
            await ended(request_id)
        assert await kept() == [None]
    async with open_platform() as platform:
        await order(platform, await sign_up("bob"))
        assert await kept() == [None, None]


async def test_after_a_freeze_returns_nothing_more_is_accepted(open_platform: OpenPlatform) -> None:
    async with open_platform(burst_requests=1000, unfinished_requests=1000) as platform:
        alice = await sign_up("alice")
        frozen = asyncio.Event()
        late = []

        async def accepted_some() -> bool:
            return bool(await simulations.list_requests(limit=1))

        async def keep_ordering(worker: int) -> None:
            for n in range(20):
                after = frozen.is_set()
                try:
                    await simulations.place(
                        platform, alice, structs.replace(ORDER, seed=100 * worker + n), DELIVERY
                    )
                except Unavailable:
                    return
                if after:
                    late.append(n)

        workers = [asyncio.create_task(keep_ordering(worker)) for worker in range(4)]
        await eventually_async(accepted_some)
        await freeze(True)
        accepted = len(await simulations.list_requests(limit=1000))
        frozen.set()
        await asyncio.gather(*workers)
        assert late == []
        assert len(await simulations.list_requests(limit=1000)) == accepted


async def test_a_flood_of_orders_does_not_delay_a_freeze(open_platform: OpenPlatform) -> None:
    async with open_platform(burst_requests=1, unfinished_requests=1) as platform:
        alice = await sign_up("alice")
        ordered = 0
        frozen = asyncio.Event()

        async def keep_ordering(seed: int) -> None:
            nonlocal ordered
            while not frozen.is_set() and ordered < 2000:
                ordered += 1
                with suppress(CollidiumError):
                    await simulations.place(platform, alice, structs.replace(ORDER, seed=seed), DELIVERY)

        async def under_way() -> bool:
            return ordered > 20

        workers = [asyncio.create_task(keep_ordering(worker)) for worker in range(8)]
        await eventually_async(under_way)
        try:
            await freeze(True)
            assert ordered < 500, "it waited for the end of the flood"
        finally:
            frozen.set()
            await asyncio.gather(*workers)


def test_delivery_options_do_not_show_the_token() -> None:
    assert "hf_a_token" not in repr(DeliveryOptions(token="hf_a_token"))
