"""Operators give back what failures cost: what was previewed, once, and never more than was charged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.core.simulations.conftest import (
    DELIVERY,
    GRANT,
    ORDER,
    OpenPlatform,
    assert_sound,
    balance,
    order,
    sign_up,
)
from tests.counts import LONG
from tortoise.exceptions import BaseORMException
from tortoise.timezone import now

from collidium import accounts, operations, simulations
from collidium.errors import Conflict, InvalidInput
from collidium.platform import Platform
from collidium.simulations import follower, refunds, transitions
from collidium.simulations.follower import Lane
from collidium.simulations.models import SimulationRequest, State
from collidium.simulations.outcomes import Ended
from collidium.simulations.refunds import Refunds, RefundWindow

#: 100 muons cost 0.139 credits, and what their owner spoiled had used 0.100 of them.
MUONS = structs.replace(ORDER, events=100)
COST, USED = Decimal("0.139"), Decimal("0.100")
SPOILT = Ended(State.FAILED, "a token without rights", USED, caused_by_owner=True)
OPERATOR = {"actor": "admin", "http_request_id": "r1"}


@pytest.fixture
async def platform(open_platform: OpenPlatform) -> AsyncIterator[Platform]:
    async with open_platform(burst_requests=1000) as platform:
        yield platform


def lately() -> RefundWindow:
    """Until in a minute."""
    return RefundWindow(now() - timedelta(days=1), now() + timedelta(minutes=1))


async def ended(platform: Platform, name: str, ending: Ended, seed: int = 1) -> str:
    """A request of that account that ended so; its id."""
    request_id = await order(platform, await sign_up(name), structs.replace(MUONS, seed=seed))
    (row,) = await follower.claim(Lane.HAND_OVER, 1, 60, uuid4().hex)
    assert row.request_id == request_id
    await transitions.finish(row, ending)
    return request_id


async def apply(seen: Refunds, window: RefundWindow, note: str | None = None) -> Refunds:
    return await refunds.refund(window, seen.digest, note, **OPERATOR)


@pytest.mark.parametrize(
    ("used", "refunded"),
    [
        (USED, COST - USED),
        (Decimal(0), COST),
        (COST, Decimal(0)),
        (Decimal(9), Decimal(0)),
        (None, Decimal(0)),
    ],
)
async def test_completed_request_refunds_what_it_did_not_use(
    platform: Platform, used: Decimal | None, refunded: Decimal
) -> None:
    request_id = await ended(platform, "alice", Ended(State.COMPLETED, used=used))
    entries = await accounts.entries((await accounts.find("alice")).id, limit=10)
    booked = [entry.delta for entry in entries if entry.reason == "simulation_refund"]
    assert booked == ([refunded] if refunded else [])
    assert (await simulations.find(request_id)).credits_refunded == refunded
    await assert_sound()


async def test_cached_answer_has_neither_charge_nor_refund(platform: Platform) -> None:
    """Both are of the account that ordered first."""
    await ended(platform, "alice", Ended(State.COMPLETED, used=USED))
    cached = await simulations.place(platform, await sign_up("bob"), structs.replace(MUONS, seed=1), DELIVERY)
    assert cached.cached
    assert cached.credits_charged == cached.credits_refunded == 0


async def test_what_was_previewed_is_given_back_once(platform: Platform) -> None:
    spoilt = await ended(platform, "alice", SPOILT)
    await ended(platform, "alice", Ended(State.FAILED, "the node burnt"), seed=2)
    await ended(platform, "alice", Ended(State.COMPLETED, used=USED), seed=3)
    window = lately()
    seen = await refunds.preview(window)
    (refund,) = seen.requests
    assert (refund.request_id, refund.hub_username, refund.reason) == (spoilt, "alice", SPOILT.reason)
    assert (refund.credits_charged, refund.credits_refunded) == (COST, COST - USED)
    assert (refund.refund, seen.total, seen.applied) == (USED, USED, False)
    assert await balance("alice") == GRANT - USED - USED

    paid = await apply(seen, window, note="the hub was down")
    assert (paid.requests, paid.applied) == (seen.requests, True)
    assert await balance("alice") == GRANT - USED
    request = await simulations.find(spoilt)
    assert (request.state, request.credits_refunded) == ("failed", COST)
    assert request.timeline[-1].reason == "an operator gave back 0.100 credits"
    (entry,) = await accounts.entries((await accounts.find("alice")).id, limit=1)
    assert (entry.reason, entry.delta, entry.note) == ("simulation_refund", USED, "the hub was down")
    (logged,) = await operations.audit_log(limit=10)
    assert (logged.action, logged.target) == ("refund", spoilt)
    assert logged.details == {"hub_username": "alice", "credits": "0.100", "note": "the hub was down"}

    assert (await refunds.preview(window)).requests == ()
    with pytest.raises(Conflict, match="0 requests"):
        await apply(seen, window)
    await assert_sound()


async def test_what_has_changed_since_the_preview_is_not_paid(platform: Platform) -> None:
    await ended(platform, "alice", SPOILT)
    window = lately()
    seen = await refunds.preview(window)
    await ended(platform, "bob", SPOILT, seed=2)
    with pytest.raises(Conflict, match=r"2 requests, 0\.200 credits"):
        await apply(seen, window)
    assert await operations.audit_log(limit=10) == []
    await apply(await refunds.preview(window), window)
    assert await balance("alice") == await balance("bob") == GRANT


async def test_refunds_are_all_or_nothing(platform: Platform) -> None:
    await ended(platform, "alice", SPOILT)
    disputed = await ended(platform, "bob", SPOILT, seed=2)
    window = lately()
    seen = await refunds.preview(window)
    bob = await accounts.find("bob")
    reference = f"{disputed}:rest"
    await accounts.post(bob.id, Decimal("0.001"), reason="simulation_refund", reference=reference)
    before = await balance("alice")
    with pytest.raises(Conflict, match="another amount"):
        await apply(seen, window)
    assert await balance("alice") == before
    assert (await refunds.preview(window)).digest == seen.digest


async def test_only_failures_of_the_window_are_given_back(platform: Platform) -> None:
    begin = now()
    await ended(platform, "alice", SPOILT)
    (row,) = await SimulationRequest.all()
    assert row.finished_at is not None
    there = (
        await refunds.preview(RefundWindow(row.finished_at, row.finished_at + timedelta(microseconds=1)))
    ).requests
    assert len(there) == 1
    assert (await refunds.preview(RefundWindow(begin, row.finished_at))).requests == ()


async def test_too_many_at_once_are_refused(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refunds, "MAX_REQUESTS", 1)
    await ended(platform, "alice", SPOILT)
    await ended(platform, "alice", SPOILT, seed=2)
    with pytest.raises(InvalidInput, match="more than 1 requests"):
        await refunds.preview(lately())


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)),
        (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)),
        (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 3, tzinfo=UTC)),
        (datetime.min.replace(tzinfo=UTC), datetime(2026, 12, 3, tzinfo=UTC)),
        (datetime(2026, 11, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_a_window_that_is_none_is_refused(begin: datetime, end: datetime) -> None:
    with pytest.raises(InvalidInput, match="window"):
        RefundWindow(begin, end)


async def test_the_database_refuses_other_changes_of_what_has_ended(platform: Platform) -> None:
    async def change(state: State, refunded: Decimal) -> None:
        await SimulationRequest.filter(state=state).update(credits_refunded=refunded)

    await ended(platform, "alice", SPOILT)
    await ended(platform, "alice", Ended(State.COMPLETED, used=USED), seed=2)
    for state, amount in (
        (State.FAILED, Decimal("0.038")),
        (State.FAILED, COST + Decimal("0.001")),
        (State.COMPLETED, COST),
    ):
        with pytest.raises(BaseORMException):
            await change(state, amount)
    await change(State.FAILED, Decimal("0.100"))
    with pytest.raises(BaseORMException):
        await SimulationRequest.filter(state=State.FAILED).update(state=State.COMPLETED)


@settings(max_examples=40 if LONG else 5, database=None)
@given(
    failures=st.lists(
        st.tuples(st.sampled_from(["alice", "bob"]), st.sampled_from(["0", "0.100", "9"])), max_size=4
    ),
    operators=st.integers(1, 4),
)
async def test_operators_at_once_pay_each_request_once(
    platform: Platform, failures: list[tuple[str, str]], operators: int
) -> None:
    await refund_everything()
    for number, (name, used) in enumerate(failures):
        spoilt = Ended(State.FAILED, "spoilt", Decimal(used), caused_by_owner=True)
        await ended(platform, name, spoilt, seed=number)
    window = lately()
    seen = await refunds.preview(window)
    before = {name: (await sign_up(name)).credits for name in ("alice", "bob")}

    async def one() -> tuple[str, ...]:
        try:
            return tuple(refund.request_id for refund in (await apply(seen, window)).requests)
        except Conflict:
            return ()

    paid = [
        request_id
        for refunded in await asyncio.gather(*(one() for _ in range(operators)))
        for request_id in refunded
    ]
    assert len(paid) == len(set(paid))
    await refund_everything()
    for name in ("alice", "bob"):
        due = sum((r.refund for r in seen.requests if r.hub_username == name), Decimal(0))
        assert await balance(name) == before[name] + due
    for row in await SimulationRequest.filter(state=State.FAILED):
        assert row.credits_refunded == row.credits_charged
    await assert_sound()


async def refund_everything() -> None:
    window = lately()
    await apply(await refunds.preview(window), window)
