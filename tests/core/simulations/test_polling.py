"""Many jobs are asked about together, and what is new of them is taken in together."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.core.simulations.conftest import ORDER, OpenPlatform, assert_sound, ended, order, reached, sign_up
from tests.core.simulations.scripted import Scripted

from collidium import simulations
from collidium.contracts.runner import JobState, JobStatus
from collidium.simulations import follower

RUNNING = JobStatus(JobState.RUNNING)


async def test_jobs_that_start_together_are_each_recorded_once(open_platform: OpenPlatform) -> None:
    runner = Scripted(RUNNING)
    async with open_platform(runner, burst_requests=100, unfinished_requests=100) as platform:
        alice = await sign_up("alice")
        ids = [await order(platform, alice, replace(ORDER, seed=seed)) for seed in range(10)]
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
    runner = Scripted(JobStatus(JobState.FAILED, reason="told"))
    async with open_platform(runner, burst_requests=100, unfinished_requests=100) as platform:
        alice = await sign_up("alice")
        ids = [await order(platform, alice, replace(ORDER, seed=seed)) for seed in range(7)]
        async with simulations.following(platform):
            assert {(await ended(request_id)).state for request_id in ids} == {"failed"}
        assert runner.calls["poll"] == len(ids)
