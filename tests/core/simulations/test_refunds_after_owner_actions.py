"""What its owner does to a request does not give the credits back that its job used."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

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
    reached,
    sign_up,
)
from tests.core.simulations.scripted import Scripted
from tests.hub import HubServer, own_hub
from tests.waiting import eventually_async
from tortoise.timezone import now

from collidium import simulations
from collidium.contracts.runner import Job, JobState, JobStatus
from collidium.simulations import follower, settling
from collidium.simulations.follower import Lane
from collidium.simulations.models import SimulationRequest
from collidium.simulations.publication import repository_name

__all__ = ["own_hub"]

#: 100 muons cost 0.139 credits; the scripted jobs use 0.1 node-hours.
MUONS = structs.replace(ORDER, events=100)
USED = Decimal("0.100")


async def test_a_token_that_cannot_publish_pays_for_the_job(
    open_platform: OpenPlatform, own_hub: HubServer
) -> None:
    own_hub.token("ada")
    async with open_platform(Scripted(), hub_url=own_hub.url) as platform, simulations.following(platform):
        request = await ended(await order(platform, await sign_up("ada"), MUONS))
        assert (request.state, request.credits_charged - request.credits_refunded) == ("failed", USED)
        assert request.node_hours == USED
        assert await balance("ada") == GRANT - USED
        await assert_sound()


async def test_who_spoils_their_own_repository_pays_for_the_job(
    open_platform: OpenPlatform, own_hub: HubServer
) -> None:
    class Prepared(Scripted):
        """Its job is done when the owner has put something of theirs where the dataset will be."""

        async def submit(self, job: Job) -> str:
            name = f"ada/{repository_name(MUONS, now().date())}"
            for repo in (name, f"{name}-{job.request_id[:8]}"):
                await asyncio.to_thread(spoil, repo)
            return await super().submit(job)

    def spoil(repo: str) -> None:
        own_hub.api("ada").create_repo(repo, repo_type="dataset")
        own_hub.api("ada").upload_file(
            path_or_fileobj=b"mine", path_in_repo="mine.txt", repo_id=repo, repo_type="dataset"
        )

    options = replace(DELIVERY, token=own_hub.token("ada"))
    async with open_platform(Prepared(), hub_url=own_hub.url) as platform, simulations.following(platform):
        placed = await simulations.place(platform, await sign_up("ada"), MUONS, options)
        request = await ended(placed.request_id)
        assert "with other content" in (request.reason or "")
        assert await balance("ada") == GRANT - USED
        await assert_sound()


async def test_an_ignored_cancellation_pays_for_what_was_used(
    open_platform: OpenPlatform,
) -> None:
    class Deaf(Scripted):
        async def cancel(self, handle: str) -> None:
            """It computes on."""

    runner = Deaf(JobStatus(JobState.RUNNING, Decimal("0.070")))
    async with open_platform(runner, cancel_deadline_seconds=0.1) as platform:
        alice = await sign_up("alice")
        async with simulations.following(platform):
            request_id = await order(platform, alice, MUONS)
            await reached(request_id, "running")
            await simulations.cancel(platform, request_id, alice)
            request = await ended(request_id)
        assert (request.state, request.node_hours) == ("cancelled", Decimal("0.070"))
        assert await balance("alice") == GRANT - Decimal("0.070")
        await assert_sound()


async def test_a_process_asleep_past_the_deadline_stops_no_job(
    open_platform: OpenPlatform,
) -> None:
    runner = Scripted(JobStatus(JobState.RUNNING))
    async with open_platform(runner) as platform:
        request_id = await order(platform, await sign_up("alice"))
        async with simulations.following(platform):
            await reached(request_id, "running")

        async def released() -> bool:
            return await SimulationRequest.exists(request_id=request_id, lease="")

        await eventually_async(released)
        await SimulationRequest.all().update(due_at=now())
        (slept,) = await follower.claim(Lane.POLL, 1, 60, "slept")
        slept.deadline_at = now() - timedelta(seconds=1)
        await SimulationRequest.all().update(lease="another")
        await settling.poll(platform, runner.name, [slept])
        assert runner.cancelled == set()
        assert (await simulations.find(request_id)).state == "running"
