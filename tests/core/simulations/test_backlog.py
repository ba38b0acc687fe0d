"""What operators watch of unfinished requests, and the files that a backup has to hold."""

from __future__ import annotations

from datetime import timedelta

from msgspec import structs
from tortoise.timezone import now

from collidium import database, simulations
from collidium.simulations import reports
from collidium.simulations.follower import Lane, claim
from collidium.simulations.models import SimulationRequest

from .conftest import ORDER, OpenPlatform, order, sign_up
from .scripted import Scripted


async def test_the_backlog_counts_requests_without_a_lease(open_platform: OpenPlatform) -> None:
    async with open_platform(Scripted()) as platform:
        alice = await sign_up("alice")
        for seed in range(2):
            await order(platform, alice, structs.replace(ORDER, seed=seed))
        await SimulationRequest.all().update(due_at=now() - timedelta(seconds=100))
        waiting = await reports.backlog()
        assert waiting.requests == {(Scripted.name, "queued"): 2}
        assert 100 <= waiting.overdue_seconds < 1000
        assert waiting.leased == 0
        assert len(await claim(Lane.HAND_OVER, 10, 60, "lease")) == 2
        taken = await reports.backlog()
        assert (taken.overdue_seconds, taken.leased) == (0, 2)


async def test_finding_what_is_overdue_reads_nothing_that_has_ended(open_platform: OpenPlatform) -> None:
    async with open_platform():
        if "sqlite" in type(database.connection()).__module__:
            plan = await database.rows_of(f"EXPLAIN QUERY PLAN {reports._DUE}", now())
            assert ["due_at" in row["detail"] for row in plan] == [True]


async def test_stored_files_are_those_of_the_output(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        request_id = await order(platform, await sign_up("alice"))
        assert await simulations.stored_files() == {}
        await SimulationRequest.all().update(output=[{"path": "data/hits.parquet", "sha256": "ab"}])
        assert await simulations.stored_files() == {f"outputs/{request_id}/ab.parquet": "ab"}
