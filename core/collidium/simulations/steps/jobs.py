"""Handing a job to its runner, and stopping it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tortoise.exceptions import IntegrityError

from collidium.contracts.runner import Job, RunnerUnavailable
from collidium.runtime.failpoints import reached
from collidium.simulations import transitions
from collidium.simulations.endings import Ending
from collidium.simulations.models import SimulationRequest
from collidium.simulations.states import State
from collidium.simulations.steps.ending import end, handle_of
from collidium.simulations.transitions import LeaseLost

if TYPE_CHECKING:
    from collidium.platform import Platform


async def submit(platform: Platform, row: SimulationRequest) -> None:
    """Hand the job over."""
    runner = platform.runners.get(row.runner)
    reached("submit.before")
    handle = await runner.submit(_job(row))
    reached("submit.handed_over")
    try:
        await transitions.handed_over(row, handle, platform.settings)
    except IntegrityError as error:
        raise RunnerUnavailable("the runner gave out the handle of another job") from error
    except LeaseLost:
        # It may have ended while it was handed over; then nobody else knows of the job.
        if await transitions.has_ended(row):
            await runner.cancel(handle)
        raise
    reached("submit.after_commit")


async def cancel(platform: Platform, row: SimulationRequest) -> None:
    """Stop the job, and end the request once the runner says that it stopped."""
    runner = platform.runners.get(row.runner)
    handle = await handle_of(runner, row)
    reached("cancel.found")
    if handle is None:
        await end(platform, row, Ending(State.CANCELLED, "cancelled before it was handed over"))
        return
    await runner.cancel(handle)
    reached("cancel.asked")
    status = await runner.poll(handle)
    if not status.state.has_ended:
        await transitions.postponed(row, "waiting for the job to stop")
    else:
        await end(platform, row, Ending(State.CANCELLED, "cancelled", status.node_hours))


def _job(row: SimulationRequest) -> Job:
    return Job(
        request_id=row.request_id,
        channel=row.channel,
        events=row.events,
        pileup=row.pileup,
        seed=row.seed,
        node_seconds=row.node_seconds,
    )
