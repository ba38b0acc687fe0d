"""Do one step of one request, other than polling; handle its failures, and end the request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tortoise.exceptions import IntegrityError

from collidium import records
from collidium.contracts.runner import Job, Runner, RunnerError, RunnerRefused, RunnerUnavailable
from collidium.contracts.storage import StorageUnavailable
from collidium.database.errors import is_away
from collidium.database.leased_loop import LeaseLost
from collidium.datasets.cards import DatasetFile
from collidium.datasets.output import PartFiles
from collidium.errors import ConfigurationError
from collidium.hub.client import Hub, HubContested, HubRefused, HubUnavailable
from collidium.hub.publishing import PublishingTarget, url_of
from collidium.runtime import logs
from collidium.runtime.failpoints import reached
from collidium.runtime.interrupts import Noting
from collidium.simulations import output, publication, transitions
from collidium.simulations.models import CANCELLABLE, SimulationRequest, State, Step
from collidium.simulations.orders import Ending, max_output_bytes
from collidium.simulations.output import WorkerLost
from collidium.simulations.publication import Provenance

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Why the output of an account without a hub token is not published.
UNPUBLISHED: Final = "kept by the platform: the account has no token of the hub to publish with"
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


async def work(platform: Platform, row: SimulationRequest) -> None:
    """Do the next step of a request. Failures go to its timeline; only those of the database are raised."""
    logs.account.set(row.hub_username)
    logs.simulation.set(row.request_id)
    try:
        await _work(platform, row)
    except LeaseLost:
        logger.info("request %s: another process works on it", row.request_id)


async def _work(platform: Platform, row: SimulationRequest) -> None:
    # Collecting and publishing get a last attempt after their deadline: the output exists, and may even be
    # published. So does the first attempt at a step, as there may have been no server until the deadline.
    untried = row.attempts == 0 and row.cancel_requested_at is None
    if transitions.past(row.deadline_at) and row.step in CANCELLABLE and not untried:
        await give_up(platform, row, row.reason)
        return
    try:
        await _step(platform, row)
    except LeaseLost:
        raise
    except FINAL as error:
        outcome, reason = transitions.outcome_of_failure(row), _report(error, row)
        await end(platform, row, Ending(outcome, reason, caused_by_owner=isinstance(error, CAUSED_BY_OWNER)))
    except PASSING as error:
        await _postpone(platform, row, error, _report(error, row))
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if is_away(error) or Noting.is_interrupt(error):
            raise
        # A plugin's bug must not end the loop.
        logger.exception("request %s: step %s failed", row.request_id, row.step)
        await _postpone(platform, row, error, "internal error of the platform; its operators see details")


def _report(error: Exception, row: SimulationRequest) -> str:
    log_for_operators(error, f"request {row.request_id}: step {row.step}")
    return message_for_owner(error)


async def _postpone(platform: Platform, row: SimulationRequest, error: BaseException, trouble: str) -> None:
    if transitions.past(row.deadline_at):
        await give_up(platform, row, trouble, caused_by_owner=isinstance(error, CAUSED_BY_OWNER))
    else:
        await transitions.postponed(row, trouble, worker_lost=isinstance(error, WorkerLost))


async def _step(platform: Platform, row: SimulationRequest) -> None:
    if row.cancel_requested_at is not None and row.step in CANCELLABLE:
        await cancel(platform, row)
    elif row.step == Step.SUBMIT:
        await submit(platform, row)
    elif row.step == Step.STORE:
        await store(platform, row)
    elif row.step == Step.COLLECT:
        await collect(platform, row)
    elif row.step == Step.PUBLISH:
        await publish(platform, row)


async def submit(platform: Platform, row: SimulationRequest) -> None:
    """Submit the job to its runner."""
    runner = platform.runners.get(row.runner)
    reached("submit.before")
    handle = await runner.submit(_job(row))
    reached("submit.handed_over")
    try:
        await transitions.handed_over(row, handle, platform.settings)
    except IntegrityError as error:
        raise RunnerUnavailable("the runner gave out the handle of another job") from error
    except LeaseLost:
        # The request may have ended in the meantime; then no other process knows of the job.
        if await transitions.has_ended(row):
            await runner.cancel(handle)
        raise
    reached("submit.after_commit")


async def cancel(platform: Platform, row: SimulationRequest) -> None:
    """Cancel the job, and end the request once the runner reports that the job has ended."""
    runner = platform.runners.get(row.runner)
    handle = await find_handle(runner, row)
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
    return Job(row.request_id, row.order, row.node_seconds)


async def store(platform: Platform, row: SimulationRequest) -> None:
    """Store finished parts of the job's output while other parts run.

    After a temporary failure the job is polled as usual, and its parts are stored later.
    """
    again = timedelta(seconds=poll_seconds(platform, row.runner))
    try:
        if await _keep_parts(platform, row, whole=False):
            again = timedelta(0)
    except RunnerRefused as error:
        # The request fails, so stop the parts that still run.
        await transitions.require_held(row)
        used = await stop(platform, row)
        await end(platform, row, Ending(State.FAILED, _report(error, row), used))
        return
    except WorkerLost:
        raise
    except PASSING as error:
        log_for_operators(error, f"request {row.request_id}: step {row.step}")
    await transitions.parts_stored(row, again)


def poll_seconds(platform: Platform, runner_name: str) -> float:
    """Return the seconds between two polls of a runner's jobs."""
    runner = platform.runners.things.get(runner_name)
    own = runner.poll_seconds if runner is not None else None
    return platform.settings.poll_seconds if own is None else own


async def _keep_parts(platform: Platform, row: SimulationRequest, *, whole: bool) -> dict[int, PartFiles]:
    """Store the parts that are not stored yet, all if ``whole``, else some of the finished; return them."""
    if row.lost_collections >= transitions.MAX_LOST_COLLECTIONS:
        raise output.InvalidOutput(f"reading the output ended {row.lost_collections} processes: {row.reason}")
    settings, order, handle = platform.settings, row.order, row.handle or ""
    runner = platform.runners.get(row.runner)
    finished = await runner.finished_parts(handle)
    kept = await output.stored_parts(row)
    wanted = [
        part for part, is_finished in enumerate(finished) if (is_finished or whole) and part not in kept
    ]

    async def note(part: int, files: PartFiles, *, stored: bool) -> None:
        try:
            await output.note_part(row, part, files, stored=stored)
        except LeaseLost:
            await output.withdraw_part(platform.storage, row, files)
            raise

    taken = sum(file.size_bytes for files in kept.values() for file in files.files)
    return await output.keep_parts(
        output.OutputSource(runner, handle, order, row.request_id, len(finished)),
        wanted if whole else wanted[:PARTS_AT_ONCE],
        platform.storage,
        scratch_of(platform, row),
        output.Checks(platform.executor, settings.scoring_limits, max_output_bytes(order, settings) - taken),
        note,
    )


async def collect(platform: Platform, row: SimulationRequest) -> None:
    """Store the output. The request of a mock, which has none, ends here."""
    reached("collect.before")
    if row.is_mock:
        url = url_of(platform.settings.hub, _repository(row))
        await end(platform, row, Ending(State.COMPLETED, output_hub_repo=url))
        return
    await _keep_parts(platform, row, whole=True)
    reached("collect.stored")
    kept = await output.stored_parts(row)
    files = output.merge_parts([files for _, files in sorted(kept.items())])
    await transitions.collected(row, files, platform.settings)


async def publish(platform: Platform, row: SimulationRequest) -> None:
    """Publish the output as a dataset of the requester, with their token, if they have one."""
    settings = platform.settings
    if row.encrypted_token is None:
        await end(platform, row, Ending(State.COMPLETED, UNPUBLISHED))
        return
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
    await end(platform, row, Ending(State.COMPLETED, output_hub_repo=url))


def _facts(platform: Platform, row: SimulationRequest) -> Mapping[str, str]:
    """Return the pipeline's facts for the card; none if the pipeline has changed since the order."""
    if platform.pipeline is None or platform.pipeline_version != row.pipeline_version:
        return {}
    return platform.pipeline.facts_of(row.channel)


def _repository(row: SimulationRequest) -> str:
    return f"{row.hub_username}/{publication.repository_name(row.order, row.created_at.date())}"


# -- the end ------------------------------------------------------------------------------------------


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
