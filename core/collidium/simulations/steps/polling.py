"""Poll a runner for the jobs of many requests in one call, and return the outcome of each request."""

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
from collidium.errors import ConfigurationError
from collidium.runtime.failpoints import reached
from collidium.runtime.interrupts import Noting
from collidium.runtime.logs import message_of
from collidium.simulations import claims
from collidium.simulations.models import SimulationRequest, State, Step
from collidium.simulations.outcomes import Ended, Outcome, Postponed, Progressed
from collidium.simulations.steps.working import give_up, log_for_operators, message_for_owner, poll_seconds

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Consecutive polls in which a runner must not know a job before the job counts as lost: a batch system may
#: not know its jobs for a moment after a restart.
DENIALS: Final = 6

_FAILURES: Final = {JobState.FAILED: State.FAILED, JobState.CANCELLED: State.CANCELLED}


async def poll(
    platform: Platform, runner_name: str, rows: Sequence[SimulationRequest]
) -> list[JobStatus | RunnerError]:
    """Poll the jobs of requests of one runner, and return its report on each."""
    statuses = await _statuses(platform, runner_name, [row.handle or "" for row in rows])
    reached("follow.polled")
    unreported = RunnerUnavailable("the runner reports nothing on the job")
    return [statuses.get(row.handle or "") or unreported for row in rows]


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


async def outcome_of_report(
    platform: Platform, row: SimulationRequest, found: JobStatus | RunnerError
) -> Outcome:
    """Return the outcome of a poll for one request. Raises LeaseLost."""
    if isinstance(found, RunnerRefused) and row.denials + 1 >= DENIALS:
        return Ended(State.FAILED, f"the runner lost the job: {message_of(found)}")
    if isinstance(found, JobStatus) and found.state in _FAILURES:
        reason = found.reason or f"the runner reports that the job {found.state}"
        return Ended(_FAILURES[found.state], reason, found.node_hours)
    if isinstance(found, JobStatus) and found.state == JobState.COMPLETED:
        return Progressed(Step.COLLECT, running=True, used=found.node_hours)
    if claims.past(row.deadline_at):
        trouble = message_of(found) if isinstance(found, RunnerError) else row.reason
        return await give_up(platform, row, trouble)
    if isinstance(found, RunnerRefused):
        return Postponed(f"the runner does not know the job: {message_of(found)}", denied=True)
    if isinstance(found, RunnerError):
        return Postponed(message_of(found))
    return _progress(row, found, timedelta(seconds=poll_seconds(platform, row.runner)))


async def outcome_of_invalid(platform: Platform, row: SimulationRequest) -> Outcome:
    """Return the outcome of a poll whose report cannot be processed. Raises LeaseLost."""
    trouble = "the runner's report is invalid; operators see why"
    return await give_up(platform, row, trouble) if claims.past(row.deadline_at) else Postponed(trouble)


def _progress(row: SimulationRequest, status: JobStatus, again: timedelta) -> Progressed:
    # A job that was queued again after it ran stays running for its owner.
    runs, queued = status.state == JobState.RUNNING, row.state == State.QUEUED
    if runs and not queued and status.parts_completed > row.parts_stored:
        return Progressed(Step.STORE)
    has_news = (runs and queued) or status.state == JobState.UNKNOWN
    reason = (status.reason or None) if has_news else None
    return Progressed(Step.FOLLOW, again, running=runs and queued, reason=reason)
