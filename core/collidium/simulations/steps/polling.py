"""Poll a runner for the jobs of many requests in one call."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from collidium.contracts.runner import (
    JobState,
    JobStatus,
    RunnerError,
    RunnerRefused,
    RunnerUnavailable,
)
from collidium.database.leased_loop import LeaseLost
from collidium.errors import ConfigurationError
from collidium.runtime.failpoints import reached
from collidium.runtime.interrupts import Noting
from collidium.runtime.logs import message_of
from collidium.simulations import transitions
from collidium.simulations.models import SimulationRequest, State
from collidium.simulations.orders import Ending
from collidium.simulations.steps.working import (
    end,
    give_up,
    log_for_operators,
    message_for_owner,
    poll_seconds,
)
from collidium.simulations.transitions import mark_running

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Consecutive polls in which a runner must not know a job before the job counts as lost: a batch system may
#: not know its jobs for a moment after a restart.
DENIALS: Final = 6

_FAILURES: Final = {JobState.FAILED: State.FAILED, JobState.CANCELLED: State.CANCELLED}


async def poll(platform: Platform, runner_name: str, rows: Sequence[SimulationRequest]) -> None:
    """Poll the jobs of requests of one runner that were claimed under one lease, and update the requests."""
    statuses = await _statuses(platform, runner_name, [row.handle or "" for row in rows])
    reached("follow.polled")
    again = timedelta(seconds=poll_seconds(platform, runner_name))
    unchanged, started = [], []
    for row in rows:
        found = statuses.get(row.handle or "") or RunnerUnavailable("the runner reports nothing on the job")
        if isinstance(found, JobStatus) and _is_unchanged(row, found):
            unchanged.append(row.request_id)
            continue
        if isinstance(found, JobStatus) and _has_started(row, found):
            started.append(row.request_id)
            continue
        try:
            await _process(platform, row, found, again)
        except LeaseLost:
            logger.info("request %s: another process works on it", row.request_id)
        except Exception:
            # An invalid report on one job must not affect the others.
            logger.exception("request %s: the runner's report cannot be processed", row.request_id)
            await _postpone(platform, row)
    if unchanged:
        await transitions.unchanged(rows[0].lease, unchanged, again)
    if started:
        await mark_running(rows[0].lease, started, again, platform.settings)


async def _statuses(
    platform: Platform, runner_name: str, handles: Sequence[str]
) -> Mapping[str, JobStatus | RunnerError]:
    try:
        statuses = dict(await platform.runners.get(runner_name).poll_many(handles))
    except (RunnerError, ConfigurationError) as error:
        log_for_operators(error, f"runner {runner_name}")
        trouble = message_for_owner(error)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        cause = error.__cause__ or error  # as the default poll_many passes it on
        if Noting.is_interrupt(cause):
            raise cause from None
        # A plugin's bug must not end the loop.
        logger.exception("runner %s failed to report on %d jobs", runner_name, len(handles))
        trouble = "the runner failed; the platform's operators see why"
    else:
        # Log an error that concerns many jobs once.
        for each in {found for found in statuses.values() if isinstance(found, RunnerError)}:
            log_for_operators(each, f"runner {runner_name}")
        return statuses
    # RunnerRefused for the whole call does not mean that any job is lost.
    return dict.fromkeys(handles, RunnerUnavailable(trouble))


async def _process(
    platform: Platform, row: SimulationRequest, found: JobStatus | RunnerError, again: timedelta
) -> None:
    if isinstance(found, RunnerRefused) and row.denials + 1 >= DENIALS:
        await end(platform, row, Ending(State.FAILED, f"the runner lost the job: {message_of(found)}"))
    elif isinstance(found, JobStatus) and found.state in _FAILURES:
        reason = found.reason or f"the runner reports that the job {found.state}"
        await end(platform, row, Ending(_FAILURES[found.state], reason, found.node_hours))
    elif isinstance(found, JobStatus) and found.state == JobState.COMPLETED:
        await transitions.completed_by_runner(row, found.node_hours, platform.settings)
    elif transitions.past(row.deadline_at):
        await give_up(platform, row, message_of(found) if isinstance(found, RunnerError) else row.reason)
    elif isinstance(found, RunnerRefused):
        await transitions.postponed(
            row, f"the runner does not know the job: {message_of(found)}", denied=True
        )
    elif isinstance(found, RunnerError):
        await transitions.postponed(row, message_of(found))
    elif _has_more_parts(row, found):
        await transitions.parts_finished(row)
    else:
        await transitions.observed(row, found, again, platform.settings)


async def _postpone(platform: Platform, row: SimulationRequest) -> None:
    trouble = "the runner's report is invalid; operators see why"
    try:
        if transitions.past(row.deadline_at):
            await give_up(platform, row, trouble)
        else:
            await transitions.postponed(row, trouble)
    except LeaseLost:
        logger.info("request %s: another process works on it", row.request_id)


def _is_unchanged(row: SimulationRequest, status: JobStatus) -> bool:
    return (
        status.state in (JobState.QUEUED, JobState.RUNNING)
        # A job that was queued again after it ran stays running for its owner.
        and not (status.state == JobState.RUNNING and row.state == State.QUEUED)
        and not _has_more_parts(row, status)
        and not transitions.past(row.deadline_at)
    )


def _has_more_parts(row: SimulationRequest, status: JobStatus) -> bool:
    running = status.state == JobState.RUNNING and row.state == State.RUNNING
    return running and status.parts_completed > row.parts_stored and not transitions.past(row.deadline_at)


def _has_started(row: SimulationRequest, status: JobStatus) -> bool:
    return (
        status.state == JobState.RUNNING
        and row.state == State.QUEUED
        and not status.reason
        and not transitions.past(row.deadline_at)
    )
