"""Have the step of a request done, and apply its outcome to the request in one transaction."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tortoise.exceptions import IntegrityError

from collidium import records
from collidium.contracts.runner import JobStatus, RunnerError, RunnerUnavailable
from collidium.database.leases import LeaseLost
from collidium.runtime import logs
from collidium.runtime.failpoints import reached
from collidium.simulations import claims, output, steps, transitions
from collidium.simulations.models import SimulationRequest, State, Step
from collidium.simulations.outcomes import Ended, HandedOver, Outcome, Progressed
from collidium.simulations.output import Note

if TYPE_CHECKING:
    from collidium.datasets.output import PartFiles
    from collidium.platform import Platform

logger = logging.getLogger(__name__)


async def work(platform: Platform, row: SimulationRequest) -> None:
    """Do the next step of a request. Failures go to its timeline; only those of the database are raised."""
    logs.account.set(row.hub_username)
    logs.simulation.set(row.request_id)
    try:
        try:
            outcome = await steps.work(platform, row, noting(platform, row))
            await _settle(platform, row, outcome)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            await _settle(platform, row, await steps.outcome_of(platform, row, error))
    except LeaseLost:
        _log_lost(row)


async def poll(platform: Platform, runner_name: str, rows: Sequence[SimulationRequest]) -> None:
    """Poll the jobs of requests of one runner that were claimed under one lease, and update the requests."""
    alike = defaultdict[Progressed, list[str]](list)
    for row, report in zip(rows, await steps.poll(platform, runner_name, rows), strict=True):
        try:
            if (common := await _process(platform, row, report)) is not None:
                alike[common].append(row.request_id)
        except LeaseLost:
            _log_lost(row)
    for common, ids in alike.items():
        if common.running:
            await transitions.mark_running(rows[0].lease, ids, common.pause, platform.settings)
        else:
            await transitions.unchanged(rows[0].lease, ids, common.pause)


async def _process(
    platform: Platform, row: SimulationRequest, report: JobStatus | RunnerError
) -> Progressed | None:
    """Apply a runner's report on one job, or return its outcome if it is one that many have."""
    try:
        outcome = await steps.outcome_of_report(platform, row, report)
        if isinstance(outcome, Progressed) and outcome.step == Step.FOLLOW and outcome.reason is None:
            return outcome
        await _settle(platform, row, outcome)
    except LeaseLost:
        raise
    except Exception:
        # An invalid report on one job must not affect the others.
        logger.exception("request %s: the runner's report cannot be processed", row.request_id)
        await _settle(platform, row, await steps.outcome_of_invalid(platform, row))
    return None


def noting(platform: Platform, row: SimulationRequest) -> Note:
    """Return what records the files of parts under the lease of a request, and raises LeaseLost."""

    async def note(part: int, files: PartFiles, *, stored: bool) -> None:
        try:
            await transitions.note_part(row, part, files, stored=stored)
        except LeaseLost:
            await output.withdraw_part(platform.storage, row, files)
            raise

    return note


async def _settle(platform: Platform, row: SimulationRequest, outcome: Outcome) -> None:
    """Apply an outcome. Raises LeaseLost."""
    match outcome:
        case Ended():
            await _end(platform, row, outcome)
        case HandedOver():
            await _hand_over(platform, row, outcome)
        case _:
            await transitions.apply(row, outcome, platform.settings)


async def _hand_over(platform: Platform, row: SimulationRequest, outcome: HandedOver) -> None:
    try:
        await transitions.apply(row, outcome, platform.settings)
    except IntegrityError as error:
        raise RunnerUnavailable("the runner gave out the handle of another job") from error
    except LeaseLost:
        # The request may have ended in the meantime; then no other process knows of the job.
        if await claims.has_ended(row):
            await platform.runners.get(row.runner).cancel(outcome.handle)
        raise
    reached("submit.after_commit")


async def _end(platform: Platform, row: SimulationRequest, ending: Ended) -> None:
    """End a request, remove its files, and notify the plugins. Raises LeaseLost."""
    # Before the change of state: no step runs for a request that has ended.
    await output.discard(steps.scratch_of(platform, row))
    reached("finish.cleared")
    ended = await transitions.finish(row, ending)
    reached("finish.after_commit")
    platform.plugins.announce("collidium_request_finished", request=records.as_json(ended))
    if row.step == Step.SUBMIT:
        # A process that lost the lease may have submitted the job in the meantime. One that does so later
        # sees that the request has ended, and cancels the job itself.
        await steps.stop(platform, row)
    if ending.state != State.COMPLETED:
        await output.sweep_parts(platform.storage)


def _log_lost(row: SimulationRequest) -> None:
    logger.info("request %s: another process works on it", row.request_id)
