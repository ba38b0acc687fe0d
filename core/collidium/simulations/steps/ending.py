"""Ending a request: cancel its job, delete its files, notify plugins; and how errors are reported."""

from __future__ import annotations

import logging
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium import records
from collidium.contracts.runner import Runner
from collidium.contracts.storage import StorageUnavailable
from collidium.errors import ConfigurationError
from collidium.runtime.failpoints import reached
from collidium.runtime.logs import message_of
from collidium.simulations import output, transitions
from collidium.simulations.models import CANCELLABLE, SimulationRequest, State, Step
from collidium.simulations.orders import Ending

if TYPE_CHECKING:
    from collidium.platform import Platform

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
    # Before the change of state: no step runs for a request that has ended.
    await output.discard(scratch_of(platform, row))
    reached("finish.cleared")
    ended = await transitions.finish(row, ending)
    reached("finish.after_commit")
    platform.plugins.announce("collidium_request_finished", request=records.as_json(ended))
    if row.step == Step.SUBMIT:
        # A process that lost the lease may have submitted the job in the meantime. One that does so later
        # sees that the request has ended, and cancels the job itself.
        await stop(platform, row)
    if ending.state != State.COMPLETED:
        await output.sweep_parts(platform.storage)


def scratch_of(platform: Platform, row: SimulationRequest) -> Path:
    """Return the directory of a request's temporary files."""
    return platform.settings.data_dir / "outputs" / row.request_id


async def give_up(
    platform: Platform, row: SimulationRequest, trouble: str | None, *, caused_by_owner: bool = False
) -> None:
    """Cancel the job of a request whose step exceeded its deadline, and end the request."""
    used = None
    if row.step in CANCELLABLE:
        # A process that was suspended until its lease expired must not cancel what another one follows.
        await transitions.require_held(row)
        used = await stop(platform, row)
        reached("give_up.stopped")
    reason = _TOO_LONG[Step(row.step)] + (f" ({trouble})" if trouble else "")
    outcome = transitions.outcome_of_failure(row)
    await end(platform, row, Ending(outcome, reason, used, caused_by_owner=caused_by_owner))


async def find_handle(runner: Runner, row: SimulationRequest) -> str | None:
    """Return the job's handle, even if the process that submitted it was killed before it was recorded."""
    if row.handle is not None:
        return row.handle
    handle = await runner.find(row.request_id)
    # A faulty runner must not make us cancel the job of another request.
    if handle is not None and await transitions.is_anothers(row, handle):
        return None
    return handle


async def stop(platform: Platform, row: SimulationRequest) -> Decimal | None:
    """Cancel the job, if there is one; return the node-hours that it used, or None if unknown."""
    try:
        runner = platform.runners.get(row.runner)
        handle = await find_handle(runner, row)
        if handle is not None:
            await runner.cancel(handle)
            return (await runner.poll(handle)).node_hours
    except (Exception, SystemExit) as error:
        # Also a plugin's bug: the request ends even if its job cannot be cancelled.
        logger.error("request %s: its job may still run: %s", row.request_id, error.__cause__ or error)
    return None


#: What owners see of errors whose messages name settings, paths and hosts.
_FOR_OWNERS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ConfigurationError, "the platform is not configured for this; its operators see why"),
    (StorageUnavailable, "the platform's storage does not respond"),
)
#: Maximum number of characters of an error that are logged.
_LOGGED: Final = 1000


def message_for_owner(error: Exception) -> str:
    """Return the message for the timeline. Runners and hubs write messages, but not causes, for owners."""
    return next((text for kind, text in _FOR_OWNERS if isinstance(error, kind)), message_of(error))


def log_for_operators(error: Exception, where: str) -> None:
    """Log the parts of an error that its owner does not see, and ``where`` it occurred."""
    details = [message_of(each)[:_LOGGED] for each in (error, error.__cause__) if each is not None]
    if details != [message_for_owner(error)]:
        logger.warning("%s: %s", where, "; because of: ".join(details))
