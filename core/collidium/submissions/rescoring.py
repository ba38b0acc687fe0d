"""Scores submissions again, with the installed scorer and against the current truth.

First each file is scored, and its scores are stored in addition to those that count, so that a killed run can
be continued. Then all are applied in one transaction, which is rolled back for a preview.

Operators can also order this over the API, once at a time per challenge. An order is a row of the database
that any process works on in the background; when a process is killed, another one continues after its lease
ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from tortoise.expressions import Q
from tortoise.timezone import now

from collidium import challenges, records
from collidium.challenges import gate
from collidium.contracts.identity import ERASED
from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.database import in_chunks, on_commit, transactional
from collidium.database.errors import is_away
from collidium.database.leased_loop import LeasedLoop, renewing
from collidium.database.leases import RENEWALS, LeaseLost, Leases
from collidium.errors import (
    CollidiumError,
    Conflict,
    InvalidInput,
    NotFound,
    ScoringFailed,
    ScoringInterrupted,
    Unavailable,
)
from collidium.files.held import scratch_directory
from collidium.files.stored import fetch
from collidium.model_runs import model_reruns
from collidium.records import RankChange
from collidium.runtime import failpoints
from collidium.runtime.progress import Progress
from collidium.runtime.waiting import WakeSignal
from collidium.submissions import replay, scores, waiting
from collidium.submissions.models import Rescoring, Submission
from collidium.submissions.redrawing import Redrawing, waits_of
from collidium.submissions.replay import Incomplete, Preview, Replay, ReplayTarget, Review
from collidium.submissions.waiting import FilesWait

if TYPE_CHECKING:
    from collidium.challenges import Challenge
    from collidium.contracts.task import Task
    from collidium.platform import Platform
    from collidium.scoring.engine import ScoringResult

logger = logging.getLogger(__name__)

#: Called with the changes, within the transaction.
Applied = Callable[[Review], Awaitable[None]]

#: Notified when this process has stored an order.
ORDERED: Final = WakeSignal()
#: Seconds between two looks for orders without a notification, and between two reports of progress.
LOOK_SECONDS: Final = 1.0
#: Maximum number of changes, and of problems, that are stored with an order.
MOST_KEPT: Final = 10_000
#: Files in a row that cannot be scored now after which the others are tried later, too.
MOST_FAILURES: Final = 3

LEASES: Final = Leases(Rescoring, "leased_until", unended=Q(ended_at__isnull=True))


async def rescore(
    platform: Platform,
    name: str,
    *,
    percent: int | None = None,
    apply: bool,
    pays: bool = True,
    actor: str,
    http_request_id: str = "",
    progress: Progress | None = None,
    applied: Applied | None = None,
    resumes: bool = False,
) -> Review:
    """Score all submissions to a challenge again and return the changes, which are only made with ``apply``.

    ``percent``: make this part of the events public, and hold back the rest until the challenge closes.
    ``pays``: whether new bests are paid, and a split may close other challenges: the operator has the scope
    for all challenges. ``applied`` is called with the changes in the transaction that makes them.
    ``resumes``: files that were tried for a day are not tried again.

    Raises NotFound, Conflict for a challenge without truth or one that cannot be split, Forbidden for a split
    that the operator may not make, and ScoringFailed if the scorer fails.
    """
    row = await challenges.get(name)
    task = platform.tasks.find(row.task)
    target = await _target(row, task, percent)
    action = "rescore" if percent is None else "split"
    problems: dict[str, str] = {}
    redrawing = await Redrawing.of(target)
    for waits in () if resumes else (target, redrawing.waits):
        await waiting.restart(waits)
    while True:
        try:
            problems |= await score_missing(platform, target, problems, progress)
        except FilesWait:
            if not apply:
                await waiting.forget_preview(target)
            raise
        await redrawing.score(platform)
        plan = Replay(
            platform.settings, target, problems, actor, action, http_request_id=http_request_id, pays=pays
        )
        try:
            return await _apply(plan, percent, redrawing, applied, apply=apply)
        except Incomplete:
            continue  # a submission arrived meanwhile
        except Preview as preview:
            return preview.review


async def _target(row: Challenge, task: Task, percent: int | None) -> ReplayTarget:
    """What is scored for: the truth that counts, or this public part of it; raises Conflict."""
    if percent is None:
        return ReplayTarget.current(row, task)
    return ReplayTarget(row.name, task, await challenges.public_part(row, percent))


@transactional
async def _apply(
    plan: Replay, percent: int | None, redrawing: Redrawing, applied: Applied | None, *, apply: bool
) -> Review:
    await redrawing.lock(plan.target.challenge)
    if percent is not None:
        row = await challenges.locked(plan.target.challenge)
        if apply and not plan.pays:
            await gate.require_unshared(row)
        await challenges.count_part(row, percent)
    if not await redrawing.is_complete():
        raise Incomplete
    await redrawing.apply()
    review = await replay.run(plan, apply=True)
    if not apply:
        raise Preview(replace(review, applied=False))
    await waiting.forget(plan.target)
    if applied is not None:
        await applied(review)
    return review


async def score_missing(
    platform: Platform,
    target: ReplayTarget,
    known: Iterable[str],
    progress: Progress | None = None,
    *,
    waits_for_task: bool = False,
    unranked: Collection[str] = (),
) -> dict[str, str]:
    """Score submissions that have no scores of the target yet; returns problems by submission.

    A file that cannot be scored for reasons that are not its own keeps its scores and waits; with
    ``waits_for_task`` also one over which the task fails. Nothing waits for lost files of submissions without
    a rank: those that are not ``ranked``, and the ids ``unranked``. Raises FilesWait, and otherwise
    ScoringFailed.
    """
    await waiting.give_up(target, unranked)
    await waiting.require_retried(target)
    problems = await waiting.left_out(target)
    done = await scores.scored(target.challenge, target.versions)
    await waiting.resolve_scored(target, done)
    settled = done | problems.keys() | set(known)
    rows = [
        row
        for row in await replay.submissions_to(target.challenge)
        if target.needs_scores(row) and row.id not in settled
    ]
    models = [row for row in rows if row.evaluation_id is not None]
    runs = await model_reruns.predictions_on(target.truth_version, [row.id for row in models])
    for row in models:
        if row.id not in runs:
            why, is_platforms = await model_reruns.why_not_run(row.id, target.truth_version)
            if is_platforms and not _is_gone(row):
                await waiting.note(target, [row.id], why)
                continue
            problems[row.id] = why
            if is_platforms is not None:
                await waiting.resolve(target, [row.id])
    rows = [row for row in rows if row.evaluation_id is None or row.id in runs]
    files = {row.id: str(runs[row.id].predictions if row.id in runs else row.sha256) for row in rows}
    tried = {files[id_]: times for id_, times in (await waiting.attempts(target)).items() if id_ in files}
    # Those that fail each time hide no others.
    rows.sort(key=lambda row: (tried.get(files[row.id], 0), files[row.id]))
    failures = finished = 0
    for sha256, same in groupby(rows, key=lambda row: files[row.id]):
        group = list(same)
        made = await _score_kept(platform, target, sha256, waits_for_task=waits_for_task)
        if isinstance(made, _Waits):
            gone = [
                row.id
                for row in group
                if _is_gone(row, made.error)
                or (isinstance(made.error, MissingFile) and (row.standing != "ranked" or row.id in unranked))
            ]
            problems |= dict.fromkeys(gone, made.reason)
            await waiting.resolve(target, gone)
            await waiting.note(target, [row.id for row in group if row.id not in gone], made.reason)
            failures += not isinstance(made.error, (MissingFile, scores.TooSlow))
            if failures >= MOST_FAILURES:
                break  # most likely the storage or the executor is away
            continue
        failures = 0
        await waiting.resolve(target, [row.id for row in group])
        for row in group:
            if isinstance(made, str):
                problems[row.id] = made
                continue
            own = scores.with_measured_errors(target.task.card, row.model, made)
            if row.id in runs and runs[row.id].truth_version == target.truth_version:
                own = replace(own, held_back=None)  # its model has not been run on these
            await scores.keep_alone(row.id, target.task.card, target.versions, own, scored_at=now())
            failpoints.reached("rescore.kept")
        finished += len(group)
        if progress:
            progress(finished, len(rows))
    await waiting.give_up(target, unranked)
    await waiting.require_none(target)
    return problems | await waiting.left_out(target)


@dataclass(frozen=True, slots=True)
class _Waits:
    """Why a file cannot be scored now."""

    reason: str
    error: Exception


def _is_gone(row: Submission, error: Exception | None = None) -> bool:
    """Whether nothing waits for a submission: it was withdrawn, or its file is erased with its account."""
    erased = ERASED.fullmatch(row.hub_username) is not None
    return row.standing == "withdrawn" or (erased and (error is None or isinstance(error, MissingFile)))


async def _score_kept(
    platform: Platform, target: ReplayTarget, sha256: str, *, waits_for_task: bool
) -> ScoringResult | str | _Waits:
    """Score a stored file; returns its problem if the scorer rejects its content."""
    async with scratch_directory(platform.settings.uploads) as directory:
        path = directory / "predictions.parquet"
        try:
            await fetch(platform.storage, scores.storage_key(sha256), path, sha256)
            return await scores.score(platform, target.task, target.truth_version, path, sha256, "ignore")
        except MissingFile as error:
            return _Waits("its file is not in the storage", error)
        except InvalidInput as error:
            if len(error.errors) < 2:
                return error.detail
            return f"{error.detail}: {'; '.join(str(one['detail']) for one in error.errors)}"
        except ScoringInterrupted as error:
            return _Waits(error.detail, error)
        except ScoringFailed as error:
            if not waits_for_task:
                raise
            return _Waits(error.detail, error)
        except (StorageUnavailable, Unavailable) as error:  # also TooSlow
            return _Waits(str(error), error)


@transactional
async def order(
    platform: Platform,
    name: str,
    *,
    percent: int | None,
    apply: bool,
    pays: bool,
    actor: str,
    http_request_id: str,
) -> records.Rescoring:
    """Order :func:`rescore` in the background.

    Raises NotFound, Conflict if there is no truth, it cannot be split, or the last order has not ended, and
    Forbidden for a split that the operator may not make.
    """
    row = await challenges.locked(name)
    target = await _target(row, platform.tasks.find(row.task), percent)
    if percent is not None and apply and not pays:
        await gate.require_unshared(row)
    last = await Rescoring.get_or_none(challenge=name)
    if last is not None:
        if last.ended_at is None:
            raise Conflict(f"{name} is being scored again since {last.asked_at:%Y-%m-%d %H:%M} UTC")
        await last.delete()
    await waiting.forget(target)
    await waiting.forget(waits_of(target))
    made = Rescoring(
        challenge=name,
        public_percent=percent,
        applies=apply,
        pays=pays,
        actor=actor,
        http_request_id=http_request_id,
        asked_at=now(),
        leased_until=now(),
    )
    await made.save(force_create=True)
    on_commit(ORDERED.notify)
    return await _view(made)


async def find(name: str) -> records.Rescoring:
    """The last order of a challenge; raises NotFound."""
    row = await Rescoring.get_or_none(challenge=(await challenges.get(name)).name)
    if row is None:
        raise NotFound(f"{name} was not scored again")
    return await _view(row)


async def _view(row: Rescoring) -> records.Rescoring:
    # Names are looked up now, as an account may have been erased.
    ids = [change["submission_id"] for change in row.changes]
    names: dict[str, str] = {}
    for some in in_chunks(ids):
        names |= dict(await Submission.filter(id__in=some).values_list("id", "hub_username"))
    changes = (
        RankChange.of(None, **change, hub_username=names.get(change["submission_id"], ""))
        for change in row.changes
    )
    seen = 0
    if row.public_percent is not None:
        before = Submission.filter(challenge=row.challenge, submitted_at__lt=row.asked_at, baseline=False)
        seen = await before.count()
    waits = {} if row.ended_at else await waiting.reasons(row.challenge)
    return records.Rescoring.of(
        row, seen_whole=seen, changes=tuple(changes), problem=row.problem or None, waiting=waits
    )


@asynccontextmanager
async def rescoring_in_background(platform: Platform) -> AsyncIterator[None]:
    """Work on orders in the background while the context lasts."""
    async with _Rescorer(platform).running():
        yield


class _Rescorer(LeasedLoop[str]):
    """Works on one order at a time."""

    def __init__(self, platform: Platform) -> None:
        super().__init__("rescoring", ORDERED, LOOK_SECONDS)
        self._platform = platform

    async def take(self) -> bool:
        if not self._under_way and (row := await _claim(self._platform.settings.lease_seconds)) is not None:
            self.begin(_work(self._platform, row), row.challenge)
        return False


async def _claim(seconds: float) -> Rescoring | None:
    """Lease the oldest order that no process works on."""
    due = Rescoring.filter(ended_at__isnull=True, leased_until__lte=now()).order_by("asked_at").limit(1)
    # A transaction locks the whole database in SQLite, so first check outside of one.
    rows = await LEASES.claim(due, timedelta(seconds=seconds)) if await due.exists() else ()
    return next(iter(rows), None)


async def _work(platform: Platform, row: Rescoring) -> None:
    """Rescore as ordered, and record progress and outcome."""
    seconds = platform.settings.lease_seconds

    counted = {"done": row.done, "submissions": row.submissions}

    async def renew() -> None:
        await LEASES.renew(row, now() + timedelta(seconds=seconds), **counted)

    try:
        await renewing(_rescore(platform, row, counted), renew, min(LOOK_SECONDS, seconds / RENEWALS))
    except LeaseLost:
        logger.info("rescoring of %s has ended, or was leased by another process", row.challenge)
    except asyncio.CancelledError:
        with suppress(Exception):
            await LEASES.release(row, now())
        raise
    except FilesWait as error:
        level = logging.WARNING if error.retry_at else logging.DEBUG
        logger.log(level, "rescoring of %s: %s", row.challenge, error)
        # A wake-up may have come before this, and a submission may lose its rank: then nothing waits for it.
        await LEASES.release(row, error.retry_at or now() + timedelta(minutes=1))
    except Exception as error:  # whatever scoring raises is kept with the order
        if is_away(error) or scores.is_transient(error):
            raise  # it is taken again when the lease ends
        if isinstance(error, CollidiumError):
            await LEASES.change(row, ended_at=now(), actor="", problem=str(error))
            return
        logger.exception("rescoring of %s", row.challenge)
        await LEASES.change(row, ended_at=now(), actor="", problem="the server failed; its log says why")


async def _rescore(platform: Platform, row: Rescoring, counted: dict[str, int]) -> None:
    def progress(done: int, submissions: int) -> None:
        counted.update(done=done, submissions=submissions)

    async def end(review: Review) -> None:
        changed = [one for one in review.submissions if one.rank_before != one.rank or one.earns]
        unscored = [one for one in review.submissions if one.problem]
        await LEASES.change(
            row,
            ended_at=now(),
            actor="",
            **counted,
            changes=[_stored(RankChange.of(one)) for one in changed[:MOST_KEPT]],
            unscored={one.submission_id: one.problem for one in unscored[:MOST_KEPT]},
        )

    review = await rescore(
        platform,
        row.challenge,
        percent=row.public_percent,
        apply=row.applies,
        pays=row.pays,
        actor=row.actor,
        http_request_id=row.http_request_id,
        progress=progress,
        applied=end,
        resumes=True,
    )
    if not row.applies:
        await end(review)


def _stored(change: RankChange) -> dict[str, Any]:
    stored = records.as_json(change)
    del stored["hub_username"]
    return stored
