"""Steps of a request: each returns an outcome, and changes nothing of the request itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.core.simulations.conftest import DELIVERY, ORDER, OpenPlatform, assert_sound, order, sign_up
from tests.core.simulations.scripted import COMPLETED, Scripted
from tortoise.timezone import now

from collidium import simulations
from collidium.contracts.runner import JobState, JobStatus, RunnerRefused
from collidium.platform import Platform
from collidium.simulations import follower, settling, steps, transitions
from collidium.simulations.follower import Lane
from collidium.simulations.models import SimulationRequest, State, Step
from collidium.simulations.outcomes import Ended, HandedOver, Outcome, Postponed, Progressed


async def outcome(platform: Platform, lane: Lane) -> Outcome:
    """The outcome of the step that is due, of which the request shows nothing before it is applied."""
    (row,) = await follower.claim(lane, 1, 60, "lease")
    before = await as_stored()
    if lane is Lane.POLL:
        (report,) = await steps.poll(platform, row.runner, [row])
        found = await steps.outcome_of_report(platform, row, report)
    else:
        try:
            found = await steps.work(platform, row, settling.noting(platform, row))
        except RunnerRefused as error:
            found = await steps.outcome_of(platform, row, error)
    after = await as_stored()
    assert after == before
    if isinstance(found, Ended):
        await transitions.finish(row, found)
    else:
        await transitions.apply(row, found, platform.settings)
    assert await as_stored() != after
    return found


async def as_stored() -> dict[str, Any]:
    return dict((await SimulationRequest.all().values())[0])


async def test_steps_return_outcomes_and_change_no_row(open_platform: OpenPlatform) -> None:
    runner = Scripted(JobStatus(JobState.RUNNING), COMPLETED)
    runner.poll_seconds = 0
    async with open_platform(runner) as platform:
        unpublished = replace(DELIVERY, token=None)
        placed = await simulations.place(platform, await sign_up("alice"), ORDER, unpublished)
        assert await outcome(platform, Lane.HAND_OVER) == HandedOver(placed.request_id)
        started = await outcome(platform, Lane.POLL)
        assert isinstance(started, Progressed)
        assert (started.step, started.running) == (Step.FOLLOW, True)
        assert await outcome(platform, Lane.POLL) == Progressed(
            Step.COLLECT, running=True, used=COMPLETED.node_hours
        )
        collected = await outcome(platform, Lane.DELIVER)
        assert isinstance(collected, Progressed)
        assert (collected.step, len(collected.files)) == (Step.PUBLISH, 1)
        published = await outcome(platform, Lane.DELIVER)
        assert isinstance(published, Ended)
        assert published.state == State.COMPLETED
        await assert_sound()


async def test_a_cancellation_meanwhile_is_not_put_off(open_platform: OpenPlatform) -> None:
    """Neither by a failure nor by a runner that reports something new."""
    async with open_platform(Scripted(JobStatus(JobState.RUNNING))) as platform:
        alice = await sign_up("alice")
        request_id = await order(platform, alice)
        assert isinstance(await outcome(platform, Lane.HAND_OVER), HandedOver)
        (row,) = await follower.claim(Lane.POLL, 1, 60, "lease")
        await simulations.cancel(platform, request_id, alice)
        outcomes = [
            Progressed(Step.FOLLOW, timedelta(hours=1), running=True, reason="on a slow node"),
            Progressed(Step.COLLECT, running=True),
            Postponed("the runner is away"),
        ]
        for each in outcomes:
            await transitions.apply(row, each, platform.settings)
            found = await SimulationRequest.get()
            assert found.due_at is not None
            assert (found.step, found.lease, found.due_at <= now()) == ("follow", "", True)
            await SimulationRequest.all().update(lease=row.lease)


async def test_a_refused_job_ends_its_request_as_an_outcome(open_platform: OpenPlatform) -> None:
    def refuse(job: object) -> None:
        raise RunnerRefused("there is no such channel")

    runner = Scripted()
    runner.submitting = refuse
    async with open_platform(runner) as platform:
        await order(platform, await sign_up("alice"))
        assert await outcome(platform, Lane.HAND_OVER) == Ended(State.FAILED, "there is no such channel")
        await assert_sound()
