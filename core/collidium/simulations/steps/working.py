"""One step of one request, and what becomes of it when that fails."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from collidium.contracts.runner import RunnerError, RunnerRefused
from collidium.contracts.storage import StorageUnavailable
from collidium.database.errors import is_away
from collidium.errors import ConfigurationError
from collidium.hub.client import HubContested, HubRefused, HubUnavailable
from collidium.simulations import transitions
from collidium.simulations.endings import Ending
from collidium.simulations.models import SimulationRequest
from collidium.simulations.output import WorkerLost
from collidium.simulations.states import CANCELLABLE, Step
from collidium.simulations.steps import delivering, jobs
from collidium.simulations.steps.ending import end, give_up, tell_operators, tell_owner
from collidium.simulations.transitions import LeaseLost

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Trying again will not help.
FINAL: Final = (RunnerRefused, HubRefused)
#: What the owner of the repository brings about: a token without rights, other things in the repository. If
#: that gave the credits back, everybody's events would be free.
OWNERS_DOING: Final = (HubRefused, HubContested)
#: Trying again may help.
PASSING: Final = (RunnerError, StorageUnavailable, HubUnavailable, ConfigurationError)


async def work(platform: Platform, row: SimulationRequest) -> None:
    """Do the next step of a request. What fails is told in its timeline; only a failing database raises."""
    try:
        await _work(platform, row)
    except LeaseLost:
        logger.info("request %s: another process works on it", row.request_id)


async def _work(platform: Platform, row: SimulationRequest) -> None:
    # What the job made is worth a last try, and it may be published already.
    if transitions.past(row.deadline_at) and row.step in CANCELLABLE:
        await give_up(platform, row, row.reason)
        return
    try:
        await _step(platform, row)
    except LeaseLost:
        raise
    except FINAL as error:
        outcome, reason = transitions.outcome_of_failure(row), _told(error, row)
        await end(platform, row, Ending(outcome, reason, owners_doing=isinstance(error, OWNERS_DOING)))
    except PASSING as error:
        await _put_off(platform, row, error)
    except Exception as error:
        if is_away(error):
            raise
        # A plugin's bug must not end the loop that follows everybody's requests.
        logger.exception("request %s: step %s failed", row.request_id, row.step)
        trouble = "something is wrong inside the platform; its operators see what"
        await _put_off(platform, row, error, trouble)


def _told(error: Exception, row: SimulationRequest) -> str:
    tell_operators(error, f"request {row.request_id}: step {row.step}")
    return tell_owner(error)


async def _put_off(
    platform: Platform, row: SimulationRequest, error: Exception, trouble: str | None = None
) -> None:
    trouble = trouble or _told(error, row)
    if transitions.past(row.deadline_at):
        await give_up(platform, row, trouble, owners_doing=isinstance(error, OWNERS_DOING))
    else:
        await transitions.postponed(row, trouble, worker_lost=isinstance(error, WorkerLost))


async def _step(platform: Platform, row: SimulationRequest) -> None:
    if row.cancel_requested_at is not None and row.step in CANCELLABLE:
        await jobs.cancel(platform, row)
    elif row.step == Step.SUBMIT:
        await jobs.submit(platform, row)
    elif row.step == Step.COLLECT:
        await delivering.collect(platform, row)
    elif row.step == Step.PUBLISH:
        await delivering.publish(platform, row)
