"""The end of challenges: closing and reopening them, and final results on the events that were held back.

Every background process looks for challenges whose closing date has passed. Each challenge is ended once, in
one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec import structs
from tortoise.timezone import now

from collidium import challenges, operations, records
from collidium.challenges import arrivals, gate, tasklist
from collidium.challenges.models import Challenge
from collidium.database import in_chunks, on_commit, transactional
from collidium.database.leased_loop import LeasedLoop
from collidium.errors import Conflict
from collidium.model_runs import model_queue, model_reruns
from collidium.runtime import failpoints
from collidium.runtime.waiting import WakeSignal
from collidium.submissions import notices, replay, rescoring, scores, waiting
from collidium.submissions.models import Submission

if TYPE_CHECKING:
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

#: Notified when this process closed a challenge.
CLOSED: Final = WakeSignal()
#: Seconds between two looks for challenges to end.
IDLE_SECONDS: Final = 1.0
#: Added to the grace period of uploads before the end checks for them.
MARGIN: Final = timedelta(seconds=2)
#: The actor in the audit log for what happens on a date.
CALENDAR: Final = "calendar"


@transactional
async def close(platform: Platform, name: str, *, actor: str, http_request_id: str) -> records.Challenge:
    """Accept no more submissions; final results follow when those on their way are scored. Idempotent.

    Raises NotFound, and Conflict for a challenge that has not opened.
    """
    row, moment = await challenges.locked(name), now()
    state = challenges.state_of(row, moment)
    if state == "upcoming":
        raise Conflict(f"{name!r} cannot be closed: {challenges.dates_refusal(row, moment)}")
    if state == "open":
        row.closes_at = moment
        await row.save(update_fields=["closes_at", "changed_at"])
        await operations.record(actor, "close_challenge", name, {}, http_request_id)
        on_commit(CLOSED.notify)
    waits = tuple(other.name for other in await _results_wait_for(platform, row))
    return structs.replace(challenges.view(row, platform), results_wait_for=waits)


async def shown(platform: Platform, name: str) -> records.Challenge:
    """A listed challenge with its task's card, and the challenges that its results wait for.

    Drafts are waited for, too, but not named. Raises NotFound.
    """
    found = await tasklist.challenge_with_card(platform, name)
    waits = await _results_wait_for(platform, await challenges.get(name))
    named = tuple(other.name for other in waits if not challenges.is_draft(other))
    return structs.replace(found, results_wait_for=named)


async def _results_wait_for(platform: Platform, row: Challenge) -> list[Challenge]:
    """The challenges that end later or never and hold back events that these results would reveal."""
    final = row.truth_version and row.truth_version.final
    if row.ended_at is not None or not final:
        return []
    return [
        other
        for other in await gate.revealed_by(row, final)
        if await _is_awaited(other, platform)
        and not (row.closes_at and other.closes_at and now() < other.closes_at <= row.closes_at)
    ]


@transactional
async def reopen(
    platform: Platform,
    name: str,
    closes_at: datetime | None,
    *,
    alone: bool = False,
    actor: str,
    http_request_id: str,
) -> records.Challenge:
    """Open a challenge now, until ``closes_at``; None: until its current date, or until it is closed.

    ``alone``: by an operator of this challenge alone; raises Forbidden where that would close others longer.

    Raises NotFound, InvalidInput for a date in the past, and Conflict after results on the events that were
    held back.
    """
    row, moment = await challenges.locked(name), now()
    challenges.require_future(closes_at, moment)
    final = row.truth_version and row.truth_version.final
    if row.ended_at is not None and final:
        raise Conflict(f"{name!r} cannot be opened again: final results came on {row.ended_at:%Y-%m-%d}")
    if final and await model_reruns.has_run(name, final):
        raise Conflict(f"{name!r} cannot be opened again: models are run on the events that were held back")
    if await Submission.exists(challenge=name, standing="practice"):
        raise Conflict(f"{name!r} cannot be opened again: there are submissions for practice")
    if row.opens_at is not None and row.opens_at > moment:
        row.opens_at = moment
    if closes_at is None and row.closes_at is not None and row.closes_at > moment:
        closes_at = row.closes_at
    if alone:
        await gate.require_no_longer_closed(row, closes_at)
    row.closes_at, row.ended_at = closes_at, None
    await row.save()
    await operations.record(actor, "open_challenge", name, {"closes_at": str(closes_at)}, http_request_id)
    return challenges.view(row, platform)


# -- the end -------------------------------------------------------------------------------------------


async def end(platform: Platform, name: str) -> bool:
    """Apply the final results of a closed challenge, unless files that may count are still on their way.

    Returns whether it has ended. Raises NotFound if its task is no longer installed.
    """
    row = await challenges.get(name)
    if row.ended_at is not None or await _is_awaited(row, platform):
        return row.ended_at is not None
    target = None
    if row.truth_version is not None and (final := row.truth_version.final) is not None:
        target = replay.ReplayTarget(name, platform.tasks.find(row.task), final)
        if await waiting.is_paused(target):
            return False
    problems: dict[str, str] = {}
    while True:
        if target is not None:
            if await _queue_finals(platform, name, target):
                return False
            _, others = await _final(row, target)
            try:
                problems |= await rescoring.score_missing(
                    platform, target, problems, waits_for_task=True, unranked=set(others)
                )
            except waiting.FilesWait as error:
                logger.warning("the end of %s: %s", name, error)
                return False
        try:
            return await _end_once(platform, name, target, problems)
        except replay.Incomplete:
            continue  # a submission arrived meanwhile


@transactional
async def _queue_finals(platform: Platform, name: str, target: replay.ReplayTarget) -> int:
    """Queue runs of the final models on the events that were held back; returns how many."""
    row = await challenges.locked(name)
    if row.ended_at is not None or await _is_awaited(row, platform) or await _results_wait_for(platform, row):
        return 0
    chosen, _ = await _final(row, target)
    queued = await model_reruns.queue(row, chosen, target.truth_version, timed_anew=False)
    failpoints.reached("challenge.finals_queued")
    return queued


async def _is_awaited(row: Challenge, platform: Platform) -> bool:
    """Whether a challenge is open, or a file on its way may still count for it."""
    moment, settings = now(), platform.settings
    if row.closes_at is None or moment < row.closes_at:
        return True
    # A margin for files that came in time and are not recorded yet.
    is_late = moment >= row.closes_at + timedelta(seconds=settings.deadline_grace_seconds) + MARGIN
    return await arrivals.are_awaited(row.name, complete=is_late)


@transactional
async def _end_once(
    platform: Platform, name: str, target: replay.ReplayTarget | None, problems: dict[str, str]
) -> bool:
    row = await challenges.locked(name)
    if row.ended_at is not None:
        return True
    if await _is_awaited(row, platform):
        return False
    if target is not None and row.truth_version is not None and (final := row.truth_version.held_back):
        if await _results_wait_for(platform, row):
            return False  # the held-back events of another challenge would be revealed
        chosen, left_out = await _final(row, target)
        if await model_reruns.not_queued(chosen, target.truth_version):
            raise replay.Incomplete
        unranked = {"standing": "not_final", "rank_score": None, "represents": False}
        for ids in in_chunks(left_out):
            await Submission.filter(id__in=ids).update(**unranked)
        await challenges.set_part(row, final)
        plan = replay.Replay(platform.settings, target, problems, CALENDAR, "end_challenge")
        await replay.run(plan, apply=True)
        await waiting.forget(target)
        await model_queue.drop(name)
    else:
        await operations.record(CALENDAR, "end_challenge", name, {}, "")
    await arrivals.end_all(name)
    row.ended_at = now()
    await row.save(update_fields=["ended_at", "changed_at"])
    await notices.of_challenge(platform, row, "results")
    failpoints.reached("challenge.before_end")
    return True


async def _final(row: Challenge, target: replay.ReplayTarget) -> tuple[list[Submission], list[str]]:
    """The final submissions of each participant, first chosen ones, then the best; and the others' ids.

    Banned accounts are included, as they may be unbanned.
    """
    rows = [one for one in await replay.submissions_to(row.name) if one.standing in ("ranked", "banned")]
    card, final, left_out = target.task.card, list[Submission](), list[str]()
    for _, group in groupby(sorted(rows, key=lambda one: one.participant), key=lambda one: one.participant):
        own = list(group)
        rank_scores = {one.id: scores.rank_score(card, one) for one in own}
        counted = [
            one for one in own if one.truth_version == row.truth_version and rank_scores[one.id] is not None
        ]
        counted.sort(
            key=lambda one: (one.chosen_at is None, -(rank_scores[one.id] or 0), one.submitted_at, one.id)
        )
        kept = {one.id for one in counted[: row.final_submissions]}
        final += [one for one in own if one.id in kept]
        left_out += [one.id for one in own if one.id not in kept]
    return final, left_out


class _Calendar(LeasedLoop[None]):
    """Announces dates, and ends challenges after their closing date."""

    def __init__(self, platform: Platform) -> None:
        super().__init__("challenges", CLOSED, IDLE_SECONDS)
        self._platform = platform

    async def take(self) -> bool:
        failed: Exception | None = None
        for row in await Challenge.filter(closes_at__lte=now() + notices.REMINDER, ended_at__isnull=True):
            try:
                await notices.dates(self._platform, row)
                await end(self._platform, row.name)
            except Exception as error:  # go on with the others
                failed = error
        if failed is not None:
            raise failed
        return False


@asynccontextmanager
async def keeping_dates(platform: Platform) -> AsyncIterator[None]:
    """End challenges on time in the background while the context lasts."""
    async with _Calendar(platform).running():
        yield
