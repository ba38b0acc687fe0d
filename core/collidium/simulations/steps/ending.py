"""The end of a request: what is announced and stopped then, and what its owner and operators learn."""

from __future__ import annotations

import logging
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium import records
from collidium.contracts.runner import Runner
from collidium.runtime.failpoints import reached
from collidium.runtime.logs import message_of
from collidium.simulations import output, transitions
from collidium.simulations.models import CANCELLABLE, SimulationRequest, State, Step
from collidium.simulations.orders import Ending

if TYPE_CHECKING:
    from collidium.platform import Platform


from collidium.contracts.storage import StorageUnavailable
from collidium.errors import ConfigurationError

logger = logging.getLogger(__name__)

_TOO_LONG: Final = {
    Step.SUBMIT: "the job could not be handed over in time",
    Step.FOLLOW: "the job took too long",
    Step.STORE: "the job took too long",
    Step.COLLECT: "the output could not be collected in time",
    Step.PUBLISH: "the output could not be published in time; the platform's operators still have it",
}


async def end(platform: Platform, row: SimulationRequest, ending: Ending) -> None:
    """End a request, remove its files, and notify the plugins. Raises LeaseLost."""
    # Before the end: no step runs for a request that has ended.
    await output.discard(scratch_of(platform, row))
    reached("finish.cleared")
    ended = await transitions.finish(row, ending)
    reached("finish.after_commit")
    platform.plugins.announce("collidium_request_finished", request=records.as_json(ended))
    if row.step == Step.SUBMIT:
        # A process that lost the lease may have handed the job over after it was looked for. One that does so
        # from now on sees that the request has ended.
        await stop(platform, row)
    if ending.state != State.COMPLETED:
        await output.sweep_parts(platform.storage)


def scratch_of(platform: Platform, row: SimulationRequest) -> Path:
    """Where files of a request lie while they are on their way."""
    return platform.settings.data_dir / "outputs" / row.request_id


async def give_up(
    platform: Platform, row: SimulationRequest, trouble: str | None, *, caused_by_owner: bool = False
) -> None:
    """End a request whose step took too long, and see to it that nothing computes on for it."""
    used = None
    if row.step in CANCELLABLE:
        # A process that slept through the deadline must not stop what another follows.
        await transitions.require_held(row)
        used = await stop(platform, row)
        reached("give_up.stopped")
    reason = _TOO_LONG[Step(row.step)] + (f" ({trouble})" if trouble else "")
    outcome = transitions.outcome_of_failure(row)
    await end(platform, row, Ending(outcome, reason, used, caused_by_owner=caused_by_owner))


async def find_handle(runner: Runner, row: SimulationRequest) -> str | None:
    """The job's handle, also when the process that handed it over was killed before writing it down."""
    if row.handle is not None:
        return row.handle
    handle = await runner.find(row.request_id)
    # Whatever a runner mixes up: no job is stopped for another request.
    if handle is not None and await transitions.is_anothers(row, handle):
        return None
    return handle


async def stop(platform: Platform, row: SimulationRequest) -> Decimal | None:
    """Stop the job, if there is one and it can be stopped; the node-hours that it used, if that is known."""
    try:
        runner = platform.runners.get(row.runner)
        handle = await find_handle(runner, row)
        if handle is not None:
            await runner.cancel(handle)
            return (await runner.poll(handle)).node_hours
    except (Exception, SystemExit) as error:
        # Also a plugin's bug: a job that cannot be stopped must not keep its request from ending.
        logger.error("request %s: its job may go on computing: %s", row.request_id, error.__cause__ or error)
    return None


logger = logging.getLogger(__name__)

#: Their messages name settings, paths and hosts.
_OF_OPERATORS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ConfigurationError, "the platform is not set up right for this; its operators see why"),
    (StorageUnavailable, "the platform's storage does not answer"),
)
#: Characters of an error that are logged; what other programs write has no bounds.
_LOGGED: Final = 1000


def message_for_owner(error: Exception) -> str:
    """The error as a timeline has it. Those of runners and hubs are written for owners, their causes not."""
    return next((sentence for kind, sentence in _OF_OPERATORS if isinstance(error, kind)), message_of(error))


def log_for_operators(error: Exception, where: str) -> None:
    """Log what the owner does not see, and ``where`` it happened."""
    details = [message_of(each)[:_LOGGED] for each in (error, error.__cause__) if each is not None]
    if details != [message_for_owner(error)]:
        logger.warning("%s: %s", where, "; because of: ".join(details))
