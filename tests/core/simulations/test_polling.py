"""Many jobs are asked about together, and what is new of them is taken in together."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import ClassVar

import pytest
from msgspec import structs
from tests.core.simulations.conftest import ORDER, OpenPlatform, assert_sound, ended, order, reached, sign_up
from tests.core.simulations.scripted import Scripted
from tortoise.timezone import now

from collidium import simulations
from collidium.contracts.runner import JobState, JobStatus, Runner
from collidium.runtime import watching
from collidium.simulations import find_with_progress, follower, transitions, watch
from collidium.simulations.models import SimulationRequest
from collidium_runners.container import ContainerRunner
from collidium_runners.local.engine import LocalRunner
from collidium_runners.mock import MockRunner
from collidium_runners.sfapi.runner import SfapiRunner
from collidium_runners.slurm.runner import SlurmRunner

RUNNING = JobStatus(JobState.RUNNING)


async def test_jobs_that_start_together_are_each_recorded_once(open_platform: OpenPlatform) -> None:
    runner = Scripted(RUNNING)
    async with open_platform(runner, burst_requests=100, unfinished_requests=100) as platform:
        alice = await sign_up("alice")
        ids = [await order(platform, alice, structs.replace(ORDER, seed=seed)) for seed in range(10)]
        async with simulations.following(platform):
            for request_id in ids:
                request = await reached(request_id, "running")
                assert [line.state for line in request.timeline] == ["queued", "running"]
                assert request.started_at == request.timeline[-1].at
        await assert_sound()


async def test_a_job_cancelled_while_it_begins_is_stopped_at_once(
    open_platform: OpenPlatform,
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Pausing(Scripted):
        poll_seconds = 3600

        async def poll(self, handle: str) -> JobStatus:
            asked.set()
            await go_on.wait()
            return await super().poll(handle)

    runner = Pausing()
    runner.answers = [RUNNING]
    async with open_platform(runner) as platform, simulations.following(platform):
        alice = await sign_up("alice")
        request_id = await order(platform, alice)
        await asked.wait()
        await simulations.cancel(platform, request_id, alice)
        go_on.set()
        request = await ended(request_id)
        assert [line.state for line in request.timeline] == ["queued", "queued", "running", "cancelled"]
        assert runner.cancelled == {request_id}
        await assert_sound()


async def test_more_than_are_claimed_in_one_go_are_followed(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "CLAIM", 2)
    runner = Scripted(JobStatus(JobState.FAILED, reason="it broke"))
    async with open_platform(runner, burst_requests=100, unfinished_requests=100) as platform:
        alice = await sign_up("alice")
        ids = [await order(platform, alice, structs.replace(ORDER, seed=seed)) for seed in range(7)]
        async with simulations.following(platform):
            assert {(await ended(request_id)).state for request_id in ids} == {"failed"}
        assert runner.calls["poll"] == len(ids)


class Slow(Scripted):
    """Is asked once an hour, unless a user watches."""

    poll_seconds = 3600
    watched_poll_seconds: ClassVar[float | None] = 0


async def test_a_watched_job_is_polled_at_once(open_platform: OpenPlatform) -> None:
    runner = Slow()
    runner.answers = [RUNNING]
    async with open_platform(runner) as platform, simulations.following(platform):
        alice = await sign_up("alice")
        request_id = await order(platform, alice)
        await reached(request_id, "running")
        runner.answers = [JobStatus(JobState.FAILED, reason="in the end")]
        stream = await watch(platform, request_id, alice.id)
        events = [event async for event in stream if event.startswith(b"data: ")]
        assert b'"state":"failed"' in events[-1]


async def test_a_watched_job_is_not_polled_where_that_is_costly(open_platform: OpenPlatform) -> None:
    """Nor while it is polled, nor after a failure: the pause grows with each."""
    runner = Slow()
    async with open_platform(runner) as platform:
        alice = await sign_up("alice")
        request_id = await order(platform, alice)
        rows = SimulationRequest.filter(request_id=request_id)
        later = now() + timedelta(hours=1)

        async def watched(*, seconds: float | None = 0, **changes: object) -> bool:
            """Whether a look makes the job due."""
            runner.watched_poll_seconds = seconds  # of this one alone
            given = {"step": "follow", "lease": "", "attempts": 0}
            await rows.update(due_at=later, **(given | changes))
            await find_with_progress(platform, request_id, alice.id)
            due = (await rows.get()).due_at
            assert due is not None
            return due < later

        assert await watched()
        assert not await watched(seconds=None)
        assert not await watched(lease="another")
        assert await watched(seconds=1, lease="another")  # and then again
        assert not await watched(seconds=1, attempts=1)
        assert not await watched(step="collect")


async def test_watched_jobs_that_are_due_together_share_a_poll(open_platform: OpenPlatform) -> None:
    """Looks at any moment of a second, in any process, make jobs due at its end, polled ones as well."""
    runner = Slow()
    runner.answers = [RUNNING]
    runner.watched_poll_seconds = 1000  # of this one alone
    async with open_platform(runner) as platform:
        alice = await sign_up("alice")
        ids = [await order(platform, alice, structs.replace(ORDER, seed=seed)) for seed in range(2)]
        async with simulations.following(platform):
            for request_id in ids:
                await reached(request_id, "running")
        rows = SimulationRequest.filter(request_id__in=ids)
        await rows.filter(request_id=ids[0]).update(lease="polled", due_at=now())
        for request_id in ids:
            await find_with_progress(platform, request_id, alice.id)
        await transitions.unchanged("polled", ids, timedelta(hours=1))
        (due,) = {row.due_at for row in await rows}
        assert due is not None
        assert due.timestamp() % 1000 == 0
        assert {row.lease for row in await rows} == {""}


def test_watched_requests_are_two_seconds_behind() -> None:
    """As watching adds it up, for runners that are polled after each look, and for those with a pause."""
    look = watching.LOOK_SECONDS + watching.SHARED_SECONDS
    assert look + follower.IDLE_SECONDS + look < 2
    polled: list[type[Runner]] = [MockRunner, LocalRunner, ContainerRunner, SlurmRunner]
    assert all(runner.watched_poll_seconds == 0 for runner in polled)
    assert look < SfapiRunner.watched_poll_seconds < 2 - look
