"""Faults of runners, hubs, databases and whole servers: requests end all the same, and are paid once."""

from __future__ import annotations

import asyncio
import logging
import signal
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.core.simulations.conftest import (
    GRANT,
    ORDER,
    WISHES,
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
from tests.waiting import eventually_async, until
from tortoise.timezone import now

from collidium import operations, simulations
from collidium.accounts.ledger import LARGEST
from collidium.contracts.runner import Job, JobState, JobStatus, RunnerRefused, RunnerUnavailable
from collidium.simulations.models import SimulationRequest

__all__ = ["own_hub"]

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

RUNNING = JobStatus(JobState.RUNNING, Decimal("0.001"))


# -- jobs that nobody would stop -----------------------------------------------------------------------------


class Slow(Scripted):
    """Hands the first job over only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def submit(self, job: Job) -> str:
        self.asked.set()
        await self.go.wait()
        return await super().submit(job)


async def expire_leases() -> None:
    await SimulationRequest.exclude(lease="").update(leased_until=now())


async def test_a_job_that_was_handed_over_after_its_request_ended_is_stopped(
    open_platform: OpenPlatform,
) -> None:
    runner = Slow()
    runner.answers = [RUNNING]
    async with open_platform(runner, lease_seconds=3600) as platform:
        alice = await sign_up("alice")
        request_id = await order(platform, alice)
        async with simulations.following(platform):
            await runner.asked.wait()
            await expire_leases()
            await simulations.cancel(platform, request_id, alice)
            async with simulations.following(platform):
                assert (await ended(request_id)).credits_refunded == Decimal("0.003")
            runner.go.set()
            await until(lambda: runner.cancelled == {request_id})
        await assert_sound()


async def test_a_job_that_was_handed_over_while_its_request_ended_is_stopped(
    open_platform: OpenPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    class Blinking(Slow):
        """Is asked for a job, looks, and answers when the job has been handed over by somebody else."""

        async def find(self, request_id: str) -> str | None:
            found = await super().find(request_id)
            self.go.set()
            await until(lambda: "another process works on it" in caplog.text)
            return found

    runner = Blinking()
    caplog.set_level(logging.INFO)
    async with open_platform(runner, lease_seconds=3600) as platform:
        alice = await sign_up("alice")
        request_id = await order(platform, alice)
        async with simulations.following(platform):
            await runner.asked.wait()
            await expire_leases()
            await simulations.cancel(platform, request_id, alice)
            async with simulations.following(platform):
                assert (await ended(request_id)).state == "cancelled"
                await until(lambda: runner.cancelled == {request_id})
        await assert_sound()


async def test_a_job_that_was_refused_in_the_end_but_taken_before_is_stopped(
    open_platform: OpenPlatform,
) -> None:
    class Forgetful(Scripted):
        async def submit(self, job: Job) -> str:
            if job.request_id in self.jobs:
                raise RunnerRefused("the project has no hours left")
            await super().submit(job)
            raise RunnerUnavailable("the answer got lost")

    runner = Forgetful()
    async with open_platform(runner) as platform, simulations.following(platform):
        request = await ended(await order(platform, await sign_up("alice")))
        assert (request.state, request.reason) == ("failed", "the project has no hours left")
        await until(lambda: runner.cancelled == {request.request_id})


async def test_nobodys_job_is_stopped_for_anothers_request(open_platform: OpenPlatform) -> None:
    class Confused(Scripted):
        async def submit(self, job: Job) -> str:
            await super().submit(job)
            return "4711"

        async def find(self, request_id: str) -> str | None:
            return "4711"

    runner = Confused()
    runner.answers = [RUNNING]
    runner.jobs["4711"] = Job("4711", "ttbar", 1, 0, 1, 1)
    async with open_platform(runner) as platform, simulations.following(platform):
        alice = await sign_up("alice")
        first = await order(platform, alice)
        await reached(first, "running")
        second = await order(platform, alice, replace(ORDER, seed=7))
        await simulations.cancel(platform, second, alice)
        assert (await ended(second)).state == "cancelled"
        assert runner.cancelled == set()


async def test_a_runner_that_cannot_even_stop_a_job_keeps_no_request_from_ending(
    open_platform: OpenPlatform,
) -> None:
    class Broken(Scripted):
        async def cancel(self, handle: str) -> None:
            raise ValueError("<html>")

    runner = Broken()
    runner.answers = [RUNNING]
    async with open_platform(runner, running_deadline_seconds=0.2) as platform:
        async with simulations.following(platform):
            assert (await ended(await order(platform, await sign_up("alice")))).state == "failed"
        assert await balance("alice") == GRANT


# -- money ---------------------------------------------------------------------------------------------------


async def test_a_refund_comes_also_to_who_has_as_much_as_anybody_may(open_platform: OpenPlatform) -> None:
    runner = Scripted()
    runner.answers = [JobStatus(JobState.FAILED, reason="told")]
    async with open_platform(runner) as platform:
        request_id = await order(platform, await sign_up("alice"))
        rest = LARGEST - await balance("alice")
        await operations.grant("alice", rest, "generous", actor="test", http_request_id="test")
        async with simulations.following(platform):
            assert (await ended(request_id)).state == "failed"
        assert await balance("alice") == LARGEST + Decimal("0.003")
        await assert_sound()


async def test_who_is_banned_meanwhile_gets_what_was_paid_for_or_the_refund(
    open_platform: OpenPlatform,
) -> None:
    runner = Scripted()
    runner.answers = [RUNNING, JobStatus(JobState.FAILED, reason="told")]
    async with open_platform(runner) as platform:
        request_id = await order(platform, await sign_up("alice"))
        await operations.ban("alice", True, actor="test", http_request_id="test")
        async with simulations.following(platform):
            assert (await ended(request_id)).credits_refunded == Decimal("0.003")
        assert await balance("alice") == GRANT


async def test_a_completion_and_a_cancellation_at_once_agree(open_platform: OpenPlatform) -> None:
    runner = Scripted()
    async with open_platform(runner, publish_deadline_seconds=0.05) as platform:
        alice = await sign_up("alice")
        ids = [await order(platform, alice, replace(ORDER, seed=seed)) for seed in range(8)]
        async with simulations.following(platform):
            answers = await asyncio.gather(
                *(simulations.cancel(platform, request_id, alice) for request_id in ids),
                return_exceptions=True,
            )
            requests = [await ended(request_id) for request_id in ids]
        for request, answer in zip(requests, answers, strict=True):
            assert (request.state == "cancelled") == (not isinstance(answer, Exception))
        await assert_sound()


# -- the hub -------------------------------------------------------------------------------------------------


async def published(hub: HubServer) -> list[str]:
    return await asyncio.to_thread(lambda: [info.id for info in hub.api("ada").list_datasets(author="ada")])


async def until_put_off(request_id: str) -> None:
    """Wait until publishing has failed and is to be tried again."""

    async def put_off() -> bool:
        row = await SimulationRequest.get(request_id=request_id)
        return row.step == "publish" and row.attempts > 0

    await eventually_async(put_off)


@pytest.mark.parametrize("late", [False, True])
async def test_a_hub_that_was_down_gets_the_dataset_once(
    late: bool, open_platform: OpenPlatform, own_hub: HubServer
) -> None:
    wishes = replace(WISHES, token=own_hub.token("ada"))
    own_hub.end(signal.SIGKILL)
    async with open_platform(Scripted(), hub_url=own_hub.url) as platform:
        ada = await sign_up("ada")
        request_id = (await simulations.place(platform, ada, ORDER, wishes)).request.request_id
        async with simulations.following(platform):
            await until_put_off(request_id)
        own_hub.start()
        # Or the platform was down itself, for longer than the step may take: nothing is thrown away.
        moments = {"due_at": now()} | ({"deadline_at": now() - timedelta(days=1)} if late else {})
        await SimulationRequest.all().update(**moments)
        async with simulations.following(platform):
            request = await ended(request_id)
        assert (request.state, request.credits_refunded) == ("completed", 0)
        assert await published(own_hub) == [f"ada/collidium-{request_id}"]
        await assert_sound()


async def test_a_hub_that_stays_down_costs_nothing_and_operators_have_the_output(
    open_platform: OpenPlatform, own_hub: HubServer, tmp_path: Path
) -> None:
    wishes = replace(WISHES, token=own_hub.token("ada"))
    own_hub.end(signal.SIGKILL)
    async with open_platform(Scripted(), hub_url=own_hub.url) as platform:
        ada = await sign_up("ada")
        request_id = (await simulations.place(platform, ada, ORDER, wishes)).request.request_id
        async with simulations.following(platform):
            await until_put_off(request_id)
            await SimulationRequest.all().update(due_at=now(), deadline_at=now())
            request = await ended(request_id)
        assert (request.state, await balance("ada")) == ("failed", GRANT)
        assert "could not be published in time" in (request.reason or "")
        (file,) = await simulations.output_of(request_id)
        key = f"outputs/{request_id}/{file.path}"
        await platform.storage.get(key, tmp_path / "fetched")
        assert (tmp_path / "fetched").stat().st_size == file.size_bytes
        assert (await SimulationRequest.get(request_id=request_id)).encrypted_token is None
        await assert_sound()
    own_hub.start()
    assert await published(own_hub) == []


async def test_output_that_cannot_be_collected_leaves_no_scratch(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    class Torn(Scripted):
        async def collect(self, handle: str, directory: Path) -> list[Path]:
            await super().collect(handle, directory)
            raise RunnerUnavailable("the connection broke")

    async with open_platform(Torn(), publish_deadline_seconds=0.2) as platform:
        request_id = await order(platform, await sign_up("alice"))
        async with simulations.following(platform):
            request = await ended(request_id)
        assert (request.state, request.credits_refunded) == ("failed", Decimal("0.003"))
        assert "the connection broke" in (request.reason or "")
    assert list((tmp_path / "data" / "outputs").iterdir()) == []
