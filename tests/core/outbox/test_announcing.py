"""Announcing: the event and its deliveries are there exactly when what they report has happened."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.fernet import Fernet

from collidium import outbox
from collidium.database import transactional
from collidium.outbox.models import Delivery, OutboxEvent
from collidium.secrets import Secrets

OURS = "https://receiver.example/hook"
GIVEN = "https://elsewhere.example/hook"


async def register(account_id: int, url: str | None = OURS) -> None:
    await outbox.register(account_id, Secrets([Fernet.generate_key().decode()]), url=url)


async def announce(account_id: int, url: str | None, record: dict[str, object]) -> None:
    await outbox.announce("job", [account_id], str(record["request_id"]), record, url=url)


def record(request_id: str = "r1") -> dict[str, object]:
    return {"request_id": request_id, "state": "completed", "credits_charged": 1.5}


async def test_registered_and_given_url_each_receive_one_event(connected: str) -> None:
    await register(1)
    await announce(1, GIVEN, record("r1"))
    await announce(1, OURS, record("r2"))
    await announce(1, None, record("r3"))
    events = [
        (d.event.reference, d.url, d.state)
        for d in await Delivery.all().prefetch_related("event").order_by("id")
    ]
    assert events == [
        ("r1", OURS, "pending"),
        ("r1", GIVEN, "pending"),
        ("r2", OURS, "pending"),
        ("r3", OURS, "pending"),
    ]
    event = await OutboxEvent.get(reference="r1")
    body = json.loads(event.body)
    assert body["type"] == event.type == "simulation.completed"
    assert body["data"] == record("r1")
    assert datetime.fromisoformat(body["timestamp"]) == event.created_at


async def test_no_event_is_written_without_a_receiver(connected: str) -> None:
    await announce(1, GIVEN, record())  # no webhook, so no secret to sign with
    await register(1, url=None)
    await announce(1, None, record())
    assert not await OutboxEvent.all()


async def test_a_rolled_back_event_is_not_sent(connected: str) -> None:
    await register(1)

    @transactional
    async def fails_at_last() -> None:
        await announce(1, None, record())
        raise RuntimeError("and never mind")

    with pytest.raises(RuntimeError):
        await fails_at_last()
    assert not await OutboxEvent.all()
    assert not await Delivery.all()


async def test_pruning_deletes_what_is_over_and_old(connected: str) -> None:
    """Of an event with a delivery that is pending still, only the other one; ids rise with time."""
    now = datetime.now(UTC)
    rows = [("delivered",), ("pending", "delivered"), ("given_up",), ("delivered",), ("delivered",)]
    for number, states in enumerate(rows):
        moment = now - timedelta(days=1 if number == 3 else 100)
        event = await OutboxEvent.create(
            id=f"evt_{number}", type="t", reference=str(number), body="{}", created_at=moment
        )
        for state in states:
            await Delivery.create(event=event, account_id=1, url=OURS, state=state, created_at=moment)
    assert await outbox.prune(now - timedelta(days=90)) == 3
    assert sorted(await OutboxEvent.all().values_list("id", flat=True)) == ["evt_1", "evt_3", "evt_4"]
    assert await Delivery.all().count() == 3
    assert await outbox.prune(now) == 2
    assert await OutboxEvent.all().values_list("id", flat=True) == ["evt_1"]
