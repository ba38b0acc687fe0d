"""Each date of a challenge is announced once, with any number of processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collidium import outbox, settings
from collidium.challenges.models import Challenge
from collidium.challenges.tasklist import open_platform
from collidium.outbox.models import Delivery, OutboxEvent
from collidium.platform import Platform
from collidium.submissions import notices
from collidium.submissions.models import Submission

ANNA, BOB = 1, 2


@pytest.fixture
async def platform(migrated_database_url: str, tmp_path: Path) -> AsyncIterator[Platform]:
    """With two accounts that have a webhook."""
    chosen = settings.load(data_dir=tmp_path, database_url=migrated_database_url)
    async with open_platform(chosen) as platform:
        for account_id in (ANNA, BOB):
            await outbox.register(account_id, platform.secrets, url="https://receiver.example/")
        yield platform


async def challenge(**dates: timedelta) -> Challenge:
    """A challenge with these dates, from now, to which one account submitted twice."""
    moment = datetime.now(UTC)
    row = await Challenge.create(
        name="jets-2027", task="jets", **{name: moment + span for name, span in dates.items()}
    )
    for number in range(2):
        await Submission.create(
            id=f"{number:032}",
            challenge=row.name,
            task="jets",
            account_id=ANNA,
            hub_username="anna",
            sha256=str(number),
            size_bytes=1,
            rows=1,
            scores={},
            participant="account:1",
            scorer_version="1",
            truth_version="1",
            submitted_at=moment,
        )
    return await Challenge.get(name=row.name)


async def look(platform: Platform) -> None:
    """What several processes do at once."""
    rows = [await Challenge.get(name="jets-2027") for _ in range(4)]
    await asyncio.gather(*(notices.dates(platform, row) for row in rows))


async def announced() -> list[str]:
    return [str(event.type) for event in await OutboxEvent.all().order_by("created_at")]


async def test_a_date_is_announced_once_and_again_when_it_moved(platform: Platform) -> None:
    row = await challenge(closes_at=timedelta(days=2))
    await look(platform)
    assert await announced() == []
    await Challenge.filter(name=row.name).update(closes_at=datetime.now(UTC) + timedelta(hours=23))
    for _ in range(2):
        await look(platform)
    assert await announced() == ["challenge.deadline"]
    assert await Delivery.all().values_list("account_id", flat=True) == [ANNA], "once for who submitted"
    await Challenge.filter(name=row.name).update(closes_at=datetime.now(UTC) + timedelta(hours=20))
    await look(platform)
    await Challenge.filter(name=row.name).update(closes_at=datetime.now(UTC) - timedelta(seconds=1))
    for _ in range(2):
        await look(platform)
    assert await announced() == ["challenge.deadline", "challenge.deadline", "challenge.closed"]


async def test_no_deadline_is_announced_before_begin_or_after_end(platform: Platform) -> None:
    row = await challenge(opens_at=timedelta(hours=1), closes_at=timedelta(hours=2))
    await look(platform)
    assert await announced() == []
    past = datetime.now(UTC) - timedelta(minutes=1)
    await Challenge.filter(name=row.name).update(opens_at=past - timedelta(days=9), closes_at=past)
    await look(platform)
    assert await announced() == ["challenge.closed"]
