"""Do one step of one request, other than polling, and return its outcome.

Steps read their request and change nothing of it: what becomes of it is up to who called them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.contracts.runner import Job, Runner, RunnerError, RunnerRefused
from collidium.contracts.storage import StorageUnavailable
from collidium.database.errors import is_away
from collidium.database.leases import LeaseLost
from collidium.datasets.cards import DatasetFile
from collidium.datasets.output import PartFiles
from collidium.errors import ConfigurationError
from collidium.hub.client import Hub, HubContested, HubRefused, HubUnavailable
from collidium.hub.publishing import PublishingTarget, url_of
from collidium.runtime import logs
from collidium.runtime.failpoints import reached
from collidium.runtime.interrupts import Noting
from collidium.simulations import claims, output, publication
from collidium.simulations.models import CANCELLABLE, SimulationRequest, State, Step
from collidium.simulations.orders import max_output_bytes
from collidium.simulations.outcomes import Ended, HandedOver, Outcome, Postponed, Progressed
from collidium.simulations.output import Note, WorkerLost
from collidium.simulations.publication import Provenance

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Why the output of an account without a hub token is not published.
UNPUBLISHED: Final = "kept by the platform: the account has no token of the hub to publish with"
#: A request fails when this many worker processes have died while they read its output.
MAX_LOST_COLLECTIONS: Final = 2
#: Maximum number of parts that are stored before the job is polled again.
PARTS_AT_ONCE: Final = 16
#: Errors that a retry cannot resolve.
FINAL: Final = (RunnerRefused, HubRefused)
#: Errors that the owner of the repository can cause, with a token without rights or other files in the
#: repository. They must not be refunded, or events would be free.
CAUSED_BY_OWNER: Final = (HubRefused, HubContested)
#: Errors that a retry may resolve.
PASSING: Final = (RunnerError, StorageUnavailable, HubUnavailable, ConfigurationError)

_TOO_LONG: Final = {
    Step.SUBMIT: "the job could not be handed over in time",
    Step.FOLLOW: "the job took too long",
    Step.STORE: "the job took too long",
    Step.COLLECT: "the output could not be collected in time",
    Step.PUBLISH: "the output could not be published in time; the platform's operators still have it",
}


async def work(platform: Platform, row: SimulationRequest, note: Note) -> Outcome:
    """Do the next step of a request, and return its outcome; :func:`outcome_of` has that of an error."""
    # Collecting and publishing get a last attempt after their deadline: the output exists, and may even be
    # published. So does the first attempt at a step, as there may have been no server until the deadline.
    untried = row.attempts == 0 and row.cancel_requested_at is None
    if claims.past(row.deadline_at) and row.step in CANCELLABLE and not untried:
        return await give_up(platform, row, row.reason)
    if row.cancel_requested_at is not None and row.step in CANCELLABLE:
        return await cancel(platform, row)
    match row.step:
        case Step.SUBMIT:
            return await submit(platform, row)
        case Step.STORE:
            return await store(platform, row, note)
        case Step.COLLECT:
            return await collect(platform, row, note)
        case Step.PUBLISH:
            return await publish(platform, row)
        case _:
            raise ValueError(f"no step {row.step!r}")


async def outcome_of(platform: Platform, row: SimulationRequest, error: BaseException) -> Outcome:
    """Return the outcome of a failed step. Raises lost leases, interrupts and errors of the database."""
    if isinstance(error, LeaseLost) or is_away(error) or Noting.is_interrupt(error):
        raise error
    if isinstance(error, FINAL):
        outcome, reason = claims.outcome_of_failure(row), _report(error, row)
        return Ended(outcome, reason, caused_by_owner=isinstance(error, CAUSED_BY_OWNER))
    if isinstance(error, PASSING):
        trouble = _report(error, row)
    else:
        # A plugin's bug must not end the loop.
        logger.error("request %s: step %s failed", row.request_id, row.step, exc_info=error)
        trouble = "internal error of the platform; its operators see details"
    if claims.past(row.deadline_at):
        return await give_up(platform, row, trouble, caused_by_owner=isinstance(error, CAUSED_BY_OWNER))
    return Postponed(trouble, worker_lost=isinstance(error, WorkerLost))


def _report(error: Exception, row: SimulationRequest) -> str:
    log_for_operators(error, f"request {row.request_id}: step {row.step}")
    return message_for_owner(error)


async def submit(platform: Platform, row: SimulationRequest) -> Outcome:
    """Submit the job to its runner."""
    runner = platform.runners.get(row.runner)
    reached("submit.before")
    handle = await runner.submit(Job(row.request_id, row.order, row.node_seconds))
    reached("submit.handed_over")
    return HandedOver(handle)


async def cancel(platform: Platform, row: SimulationRequest) -> Outcome:
    """Cancel the job, and end the request once the runner reports that the job has ended."""
    runner = platform.runners.get(row.runner)
    handle = await find_handle(runner, row)
    reached("cancel.found")
    if handle is None:
        return Ended(State.CANCELLED, "cancelled before it was handed over")
    await runner.cancel(handle)
    reached("cancel.asked")
    status = await runner.poll(handle)
    if not status.state.has_ended:
        return Postponed("waiting for the job to stop")
    return Ended(State.CANCELLED, "cancelled", status.node_hours)


async def store(platform: Platform, row: SimulationRequest, note: Note) -> Outcome:
    """Store finished parts of the job's output while other parts run.

    After a temporary failure the job is polled as usual, and its parts are stored later.
    """
    again = timedelta(seconds=poll_seconds(platform, row.runner))
    try:
        if await _keep_parts(platform, row, note, whole=False):
            again = timedelta(0)
    except RunnerRefused as error:
        # The request fails, so stop the parts that still run.
        await claims.LEASES.require(row)
        used = await stop(platform, row)
        return Ended(State.FAILED, _report(error, row), used)
    except WorkerLost:
        raise
    except PASSING as error:
        log_for_operators(error, f"request {row.request_id}: step {row.step}")
    return Progressed(Step.FOLLOW, again, parts_stored=len(await output.stored_parts(row)))


def poll_seconds(platform: Platform, runner_name: str) -> float:
    """Return the seconds between two polls of a runner's jobs."""
    runner = platform.runners.things.get(runner_name)
    own = runner.poll_seconds if runner is not None else None
    return platform.settings.poll_seconds if own is None else own


async def _keep_parts(
    platform: Platform, row: SimulationRequest, note: Note, *, whole: bool
) -> dict[int, PartFiles]:
    """Store the parts that are not stored yet, all if ``whole``, else some of the finished; return them."""
    if row.lost_collections >= MAX_LOST_COLLECTIONS:
        raise output.InvalidOutput(f"reading the output ended {row.lost_collections} processes: {row.reason}")
    settings, order, handle = platform.settings, row.order, row.handle or ""
    runner = platform.runners.get(row.runner)
    finished = await runner.finished_parts(handle)
    kept = await output.stored_parts(row)
    wanted = [
        part for part, is_finished in enumerate(finished) if (is_finished or whole) and part not in kept
    ]
    taken = sum(file.size_bytes for files in kept.values() for file in files.files)
    return await output.keep_parts(
        output.OutputSource(runner, handle, order, row.request_id, len(finished)),
        wanted if whole else wanted[:PARTS_AT_ONCE],
        platform.storage,
        scratch_of(platform, row),
        output.Checks(platform.executor, settings.scoring_limits, max_output_bytes(order, settings) - taken),
        note,
    )


async def collect(platform: Platform, row: SimulationRequest, note: Note) -> Outcome:
    """Store the output. The request of a mock, which has none, ends here."""
    reached("collect.before")
    if row.is_mock:
        return Ended(State.COMPLETED, output_hub_repo=url_of(platform.settings.hub, _repository(row)))
    await _keep_parts(platform, row, note, whole=True)
    reached("collect.stored")
    kept = await output.stored_parts(row)
    files = output.merge_parts([files for _, files in sorted(kept.items())])
    return Progressed(Step.PUBLISH, parts_stored=len(kept), files=tuple(files))


async def publish(platform: Platform, row: SimulationRequest) -> Outcome:
    """Publish the output as a dataset of the requester, with their token, if they have one."""
    settings = platform.settings
    if row.encrypted_token is None:
        return Ended(State.COMPLETED, UNPUBLISHED)
    provenance = Provenance(
        request_id=row.request_id,
        order=row.order,
        pipeline_version=row.pipeline_version,
        platform_tag=settings.tag,
        hub=settings.public_hub,
        files=[DatasetFile(**file) for file in row.output],
        facts=_facts(platform, row),
    )
    hub = Hub(settings.hub, platform.secrets.decrypt(row.encrypted_token))
    target = PublishingTarget(hub, _repository(row), row.private)
    reached("publish.before")
    url = await publication.publish(provenance, target, platform.storage, scratch_of(platform, row))
    reached("publish.published")
    return Ended(State.COMPLETED, output_hub_repo=url)


def _facts(platform: Platform, row: SimulationRequest) -> Mapping[str, str]:
    """Return the pipeline's facts for the card; none if the pipeline has changed since the order."""
    if platform.pipeline is None or platform.pipeline_version != row.pipeline_version:
        return {}
    return platform.pipeline.facts_of(row.channel)


def _repository(row: SimulationRequest) -> str:
    return f"{row.hub_username}/{publication.repository_name(row.order, row.created_at.date())}"


# -- the end ------------------------------------------------------------------------------------------


def scratch_of(platform: Platform, row: SimulationRequest) -> Path:
    """Return the directory of a request's temporary files."""
    return platform.settings.data_dir / "outputs" / row.request_id


async def give_up(
    platform: Platform, row: SimulationRequest, trouble: str | None, *, caused_by_owner: bool = False
) -> Ended:
    """Cancel the job of a request whose step exceeded its deadline."""
    used = None
    if row.step in CANCELLABLE:
        # A process that was suspended until its lease expired must not cancel what another one follows.
        await claims.LEASES.require(row)
        used = await stop(platform, row)
        reached("give_up.stopped")
    reason = _TOO_LONG[Step(row.step)] + (f" ({trouble})" if trouble else "")
    return Ended(claims.outcome_of_failure(row), reason, used, caused_by_owner=caused_by_owner)


async def find_handle(runner: Runner, row: SimulationRequest) -> str | None:
    """Return the job's handle, even if the process that submitted it was killed before it was recorded."""
    if row.handle is not None:
        return row.handle
    handle = await runner.find(row.request_id)
    # A faulty runner must not make us cancel the job of another request.
    if handle is not None and await claims.is_anothers(row, handle):
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
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if Noting.is_interrupt(error):
            raise
        # Also a plugin's bug: the request ends even if its job cannot be cancelled.
        logger.error("request %s: its job may still run: %s", row.request_id, error.__cause__ or error)
    return None


# -- reports -----------------------------------------------------------------------------------------

#: What owners see of errors whose messages name settings, paths and hosts.
_FOR_OWNERS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ConfigurationError, "the platform is not configured for this; its operators see why"),
    (StorageUnavailable, "the platform's storage does not respond"),
)
#: Maximum number of characters of an error that are logged.
_LOGGED: Final = 1000


def message_for_owner(error: Exception) -> str:
    """Return the message for the timeline. Runners and hubs write messages, but not causes, for owners."""
    return next((text for kind, text in _FOR_OWNERS if isinstance(error, kind)), logs.message_of(error))


def log_for_operators(error: Exception, where: str) -> None:
    """Log the parts of an error that its owner does not see, and ``where`` it occurred."""
    details = [logs.message_of(each)[:_LOGGED] for each in (error, error.__cause__) if each is not None]
    if details != [message_for_owner(error)]:
        logger.warning("%s: %s", where, "; because of: ".join(details))
