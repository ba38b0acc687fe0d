"""The follower: every request comes to its end, whatever runner, hub and other processes do."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
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
    followed,
    order,
    reached,
    sign_up,
)
from tests.core.simulations.scripted import Scripted
from tests.waiting import eventually_async
from tortoise.timezone import now

from collidium import simulations
from collidium.contracts.runner import (
    Job,
    JobState,
    JobStatus,
    RunnerRefused,
    RunnerUnavailable,
)
from collidium.database import connection
from collidium.errors import Conflict, NotFound
from collidium.order import Order
from collidium.simulations import follower, transitions
from collidium.simulations.models import HistoryLine, SimulationRequest
from collidium.simulations.publication import repository_name

QUEUED = JobStatus(JobState.QUEUED)
RUNNING = JobStatus(JobState.RUNNING, Decimal("0.001"))
PRICE = Decimal("0.003")


async def test_a_mock_request_passes_through_its_states(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        request = await followed(platform)
        assert [moment.state for moment in request.timeline] == ["queued", "running", "completed"]
        assert request.output_is_mock
        name = repository_name(ORDER, request.created_at.date())
        assert request.output_hub_repo == f"{platform.settings.hub}/datasets/alice/{name}"
        assert await balance("alice") == GRANT - PRICE


async def test_state_and_timeline_are_of_one_moment(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that ends between the reads of its row and its timeline has the state of the latter."""
    async with open_platform() as platform:
        request_id = await order(platform, await sign_up("alice"))
        read = transitions.history_of

        async def late(row: SimulationRequest) -> list[HistoryLine]:
            monkeypatch.setattr(transitions, "history_of", read)
            async with simulations.following(platform):
                await ended(request_id)
            return await read(row)

        monkeypatch.setattr(transitions, "history_of", late)
        request = await simulations.find(request_id)
        assert request.state == request.timeline[-1].state == "completed"


@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
async def test_what_the_runner_ends_is_refunded(outcome: str, open_platform: OpenPlatform) -> None:
    async with open_platform(mock_outcome=outcome) as platform:
        request = await followed(platform)
        assert (request.state, request.credits_refunded) == (outcome, request.credits_charged)
        assert f"set to {outcome.removesuffix('ed').removesuffix('l')}" in (request.reason or "")
        assert await balance("alice") == GRANT


async def test_a_cancelled_request_pays_for_what_it_used(open_platform: OpenPlatform) -> None:
    runner = Scripted(RUNNING)
    async with open_platform(runner) as platform, simulations.following(platform):
        alice = await sign_up("alice")
        request_id = await order(platform, alice, structs.replace(ORDER, events=100))
        await reached(request_id, "running")
        assert (await simulations.cancel(platform, request_id, alice)).cancel_requested
        request = await ended(request_id)
        assert request.state == "cancelled"
        assert request.credits_charged == Decimal("0.139")
        assert request.credits_refunded == Decimal("0.089")
        assert runner.cancelled == {request_id}
        # Asked again, nothing changes.
        assert (await simulations.cancel(platform, request_id, alice)).state == "cancelled"
        await assert_sound()


async def test_a_completed_request_cannot_be_cancelled(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform, simulations.following(platform):
        alice = await sign_up("alice")
        request = await ended(await order(platform, alice))
        with pytest.raises(Conflict, match="completed already"):
            await simulations.cancel(platform, request.request_id, alice)


@pytest.mark.parametrize(
    "troubles",
    [
        [RunnerUnavailable("500"), RunnerUnavailable("no answer")],
        [ValueError("<html>"), KeyError("state")],
        [JobStatus(JobState.UNKNOWN, reason="state WEIRD")],
        [RunnerRefused("no such job"), RunnerRefused("no such job")],
        [RUNNING, QUEUED, RUNNING, JobStatus(JobState.UNKNOWN)],
    ],
)
async def test_a_runner_on_a_bad_day_loses_nothing(
    troubles: list[JobStatus | Exception], open_platform: OpenPlatform
) -> None:
    runner = Scripted(*troubles, JobStatus(JobState.FAILED, reason="in the end"))
    async with open_platform(runner) as platform:
        request = await followed(platform)
        assert (request.state, request.reason) == ("failed", "in the end")
        assert await balance("alice") == GRANT


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
async def test_a_runner_that_exits_ends_no_server(open_platform: OpenPlatform, error: BaseException) -> None:
    def leave(job: Job) -> None:
        if runner.calls["submit"] == 1:
            raise error

    runner = Scripted()
    runner.submitting = leave
    runner.answers = [error, JobStatus(JobState.FAILED, reason="in the end")]
    async with open_platform(runner) as platform:
        request = await followed(platform)
        assert (request.state, request.reason) == ("failed", "in the end")


@pytest.mark.parametrize("used", ["NaN", "-1", "Infinity", "1e30"])
async def test_node_hours_that_no_job_can_use_are_not_believed(
    used: str, open_platform: OpenPlatform
) -> None:
    runner = Scripted(JobStatus(JobState.FAILED, Decimal(used), "out of memory"))
    async with open_platform(runner) as platform:
        request = await followed(platform)
        assert (request.state, request.node_hours, request.reason) == ("failed", 0, "out of memory")


async def test_a_runner_of_many_words_does_not_fill_the_timeline(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transitions, "LINES", 3)
    weather = [JobStatus(JobState.UNKNOWN, reason=f"{degrees} degrees in the hall") for degrees in range(9)]
    runner = Scripted(*weather, JobStatus(JobState.FAILED, reason="too hot"))
    async with open_platform(runner) as platform:
        request = await followed(platform)
    assert [moment.reason for moment in request.timeline] == [
        None,
        *(f"{degrees} degrees in the hall" for degrees in range(3)),
        "too hot",
    ]


async def test_nonsense_about_one_job_ends_at_its_deadline(open_platform: OpenPlatform) -> None:
    runner = Scripted(JobStatus(JobState.FAILED, reason=404))  # as a plugin may
    async with open_platform(runner, queued_deadline_seconds=0.2) as platform:
        request = await followed(platform)
        assert (request.state, request.credits_refunded) == ("failed", PRICE)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([RunnerRefused("no such job")], "lost the job"),
        (
            [
                *(RunnerUnavailable("restarting") for _ in range(6)),
                RunnerRefused("no such job"),
                JobStatus(JobState.FAILED, reason="in the end"),
            ],
            "in the end",
        ),
    ],
)
async def test_only_a_job_denied_again_and_again_is_lost(
    answers: list[JobStatus | Exception], reason: str, open_platform: OpenPlatform
) -> None:
    async with open_platform(Scripted(*answers)) as platform:
        request_id = await order(platform, await sign_up("alice"))
        async with simulations.following(platform):
            await until_tried(request_id)
            for _ in range(8):
                await make_due(request_id)
                await until_tried(request_id)
            request = await ended(request_id)
        assert (request.state, request.credits_refunded) == ("failed", PRICE)
        assert reason in (request.reason or "")


async def test_an_unclaimed_job_fails_at_its_deadline(open_platform: OpenPlatform) -> None:
    def refuse(job: Job) -> None:
        raise RunnerUnavailable("down for maintenance")

    runner = Scripted()
    runner.submitting = refuse
    async with open_platform(runner, submit_deadline_seconds=0.2) as platform:
        request = await followed(platform)
        assert request.state == "failed"
        assert "down for maintenance" in (request.reason or "")
        assert await balance("alice") == GRANT


async def test_a_job_that_the_runner_never_takes_fails_at_once(open_platform: OpenPlatform) -> None:
    def refuse(job: Job) -> None:
        raise RunnerRefused("no node has so much memory")

    runner = Scripted()
    runner.submitting = refuse
    async with open_platform(runner) as platform:
        request = await followed(platform)
        assert (request.state, request.reason) == ("failed", "no node has so much memory")
        assert (runner.calls["submit"], await balance("alice")) == (1, GRANT)


@pytest.mark.parametrize("last", [RUNNING, RunnerUnavailable("gone"), QUEUED])
async def test_what_takes_too_long_fails_and_computes_no_more(
    last: JobStatus | Exception, open_platform: OpenPlatform
) -> None:
    runner = Scripted(last)
    async with open_platform(runner, queued_deadline_seconds=0.2, running_deadline_seconds=0.2) as platform:
        request = await followed(platform)
        assert (request.state, request.credits_refunded) == ("failed", PRICE)
        assert runner.cancelled == {request.request_id}


async def test_a_handle_that_another_request_has_is_not_taken(open_platform: OpenPlatform) -> None:
    class Confused(Scripted):
        async def submit(self, job: Job) -> str:
            await super().submit(job)
            return "4711"

        async def find(self, request_id: str) -> str | None:
            return None

    runner = Confused(RUNNING)
    async with open_platform(runner, submit_deadline_seconds=0.2) as platform:
        runner.jobs["4711"] = Job("4711", Order("ttbar", 1, 0, 1), 1)
        alice = await sign_up("alice")
        async with simulations.following(platform):
            first = await order(platform, alice)
            await reached(first, "running")
            second = await ended(await order(platform, alice, structs.replace(ORDER, seed=7)))
        assert second.state == "failed"
        assert "handle of another job" in (second.reason or "")
        assert (await simulations.find(first)).state == "running"


async def test_many_followers_share_the_work_and_nothing_is_done_twice(open_platform: OpenPlatform) -> None:
    runner = Scripted(*[QUEUED] * 20, *[RUNNING] * 20, JobStatus(JobState.FAILED, reason="it broke"))
    async with open_platform(runner, burst_requests=100, unfinished_requests=100) as platform:
        alice = await sign_up("alice")
        ids = [await order(platform, alice, structs.replace(ORDER, seed=seed)) for seed in range(20)]
        async with AsyncExitStack() as followers:
            for _ in range(3):
                await followers.enter_async_context(simulations.following(platform))
            requests = [await ended(request_id) for request_id in ids]
        assert {request.state for request in requests} == {"failed"}
        assert runner.calls["submit"] == len(ids)
        assert await balance("alice") == GRANT
        await assert_sound()


async def test_what_a_stopped_follower_had_is_taken_over_at_once(open_platform: OpenPlatform) -> None:
    handing_over, hang = asyncio.Event(), asyncio.Event()

    class Slow(Scripted):
        async def submit(self, job: Job) -> str:
            handing_over.set()
            await hang.wait()
            return await super().submit(job)

    runner = Slow()
    async with open_platform(runner, lease_seconds=3600) as platform:
        request_id = await order(platform, await sign_up("alice"))
        async with simulations.following(platform):
            await handing_over.wait()
        hang.set()
        runner.answers = [JobStatus(JobState.FAILED, reason="it broke")]
        async with simulations.following(platform):
            assert (await ended(request_id)).reason == "it broke"


async def test_what_a_stopping_follower_was_leasing_is_free_at_once(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    leased, lease = asyncio.Event(), follower.claim

    async def cut_off(*arguments: Any) -> list[SimulationRequest]:
        if await lease(*arguments):
            leased.set()
            await asyncio.Event().wait()
        return []

    monkeypatch.setattr(follower, "claim", cut_off)
    async with open_platform(Scripted()) as platform:
        await order(platform, await sign_up("alice"))
        async with simulations.following(platform):
            await leased.wait()
        assert (await SimulationRequest.get()).lease == ""


async def test_a_clock_that_was_set_back_delays_nothing_for_long(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        request_id = await order(platform, await sign_up("alice"))
        ahead = now() + timedelta(days=30)
        await SimulationRequest.all().update(due_at=ahead, lease="x", leased_until=ahead, deadline_at=ahead)
        async with simulations.following(platform):
            assert (await ended(request_id)).state == "completed"


async def test_an_order_is_tried_also_after_its_deadline(open_platform: OpenPlatform) -> None:
    """A clock that jumped ahead, or a long stop of all servers, ends no order that was never handed over."""
    runner = Scripted(JobStatus(JobState.FAILED, reason="it broke"))
    async with open_platform(runner) as platform:
        request_id = await order(platform, await sign_up("alice"))
        await SimulationRequest.all().update(deadline_at=now() - timedelta(days=1))
        async with simulations.following(platform):
            request = await ended(request_id)
        assert (request.reason, request.credits_refunded) == ("it broke", PRICE)
        await assert_sound()


async def test_the_database_refuses_to_change_how_a_request_ended(open_platform: OpenPlatform) -> None:
    async with open_platform() as platform:
        request = await followed(platform)
        for change in ("state = 'running'", "credits_refunded = 1", "step = 'submit'"):
            with pytest.raises(Exception, match=r"request has ended|refund"):
                await connection().execute_query(f"UPDATE simulation_requests SET {change}")
        assert (await simulations.find(request.request_id)) == request


async def make_due(request_id: str) -> None:
    """Spare the test the pauses after failures, which are up to minutes."""
    resting = SimulationRequest.filter(request_id=request_id, lease="").exclude(step="")
    await resting.update(due_at=now())


async def until_tried(request_id: str) -> None:
    """Wait until no process works on the request and nothing about it is due."""

    async def rests() -> bool:
        row = await SimulationRequest.get(request_id=request_id)
        return row.lease == "" and (row.due_at is None or row.due_at > now())

    await eventually_async(rests)


async def test_output_without_a_token_of_the_hub_is_kept(open_platform: OpenPlatform) -> None:
    async with open_platform(Scripted(), hub_url="http://127.0.0.1:1") as platform:
        ada, bob = await sign_up("ada.sso"), await sign_up("bob")
        unpublished = replace(DELIVERY, token=None)
        request_id = (await simulations.place(platform, ada, ORDER, unpublished)).request_id
        async with simulations.following(platform):
            request = await ended(request_id)
        assert (request.state, request.output_hub_repo) == ("completed", None)
        assert "no token of the hub" in (request.reason or "")
        (file,) = await simulations.output_of(request_id, ada.id)
        assert file.rows == ORDER.events
        assert await balance("ada.sso") == GRANT - PRICE
        with pytest.raises(NotFound):
            await simulations.output_of(request_id, bob.id)
        assert (await simulations.place(platform, ada, ORDER, unpublished)).cached
        assert not (await simulations.place(platform, bob, ORDER, DELIVERY)).cached, "no dataset answers it"
        await assert_sound()
