"""What a look at a long backlog costs, and that none hides another account."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.counts import LONG
from tests.database_work import analyze, work_of_database

from collidium.outbox import deliveries
from collidium.outbox.models import Delivery, OutboxEvent
from collidium.outbox.turns import Due
from collidium.outbox.window import EACH, OLDEST, ROUND, DueWindow

NOW = datetime(2027, 3, 1, tzinfo=UTC)
#: Rows of the long backlog.
MANY = 40_000 if LONG else 4_000


async def announce(account_id: int, count: int = 1, *, host: str = "a.example", minutes: float = 60) -> None:
    """Write due deliveries of an account, so many minutes old."""
    await add([(account_id, host, NOW - timedelta(minutes=minutes))] * count)


async def add(receivers: list[tuple[int, str, datetime]]) -> None:
    """Write a delivery for each account, host and time at which it is due."""
    event = OutboxEvent(id="e", type="test", reference="r", body="{}", created_at=NOW)
    await OutboxEvent.bulk_create([event], ignore_conflicts=True)
    common = {"event_id": "e", "url": "https://x/", "created_at": NOW}
    rows = [
        Delivery(account_id=account_id, host=host, next_attempt_at=at, **common)
        for account_id, host, at in receivers
    ]
    await Delivery.bulk_create(rows, batch_size=1000)


def accounts_of(due: list[Due]) -> list[int]:
    return [delivery.receiver.account_id for delivery in due]


async def cost_of_take() -> int:
    await analyze()
    async with work_of_database() as work:
        assert len(await deliveries.take(NOW, timedelta(minutes=1), lambda due: due[:8], DueWindow())) == 8
    return work.amount


async def test_take_costs_the_same_with_any_backlog(connected: str) -> None:
    """Of many accounts with one delivery, of one account with many, and of both."""
    await add([(account, "", NOW - timedelta(minutes=60)) for account in range(1, 1001)])
    few = await cost_of_take()
    await add([(account, "", NOW - timedelta(minutes=50)) for account in range(2000, 2000 + MANY)])
    assert await cost_of_take() < 1.5 * few
    await announce(1_000_000, MANY, minutes=90)
    assert await cost_of_take() < 1.5 * few


async def test_backlog_of_one_account_hides_no_other(connected: str) -> None:
    await announce(5, 2 * OLDEST, minutes=90)
    await announce(1, minutes=1)
    await announce(9, 2, minutes=2)
    due = await DueWindow().look(NOW)
    assert accounts_of(due)[:4] == [5, 9, 1, 5]  # first ones by age, then second ones
    assert accounts_of(due).count(5) <= EACH


async def test_backlog_of_one_host_hides_no_other(connected: str) -> None:
    await announce(5, 2 * OLDEST, host="b.example", minutes=90)
    await announce(5, host="c.example", minutes=1)
    due = await DueWindow().look(NOW)
    assert [delivery.receiver.host for delivery in due[:2]] == ["b.example", "c.example"]


async def test_postponed_deliveries_hide_none_for_long(connected: str) -> None:
    """Each look sees the next receivers of a round, until it has seen all of them."""
    await announce(1, 2 * OLDEST, minutes=90)
    later = NOW + timedelta(minutes=10)
    await add([(account, "", later) for account in range(2, 2 + 2 * ROUND)])
    await announce(5000, minutes=1)
    await announce(1, OLDEST, minutes=0.5)  # newer, so that it is not seen for being new
    window = DueWindow()
    seen = [5000 in accounts_of(await window.look(NOW)) for _ in range(3)]
    assert seen == [False, False, True]


async def test_new_delivery_is_seen_behind_many_receivers(connected: str) -> None:
    await add([(account, "", NOW - timedelta(minutes=90)) for account in range(1, 3 * OLDEST)])
    await announce(100_000, minutes=0)
    assert 100_000 in accounts_of(await DueWindow().look(NOW))


async def test_clock_that_was_set_back_hides_nothing(connected: str) -> None:
    await announce(1, OLDEST, minutes=90)
    await announce(2, minutes=-60 * 20)
    assert set(accounts_of(await DueWindow().look(NOW))) == {1, 2}
