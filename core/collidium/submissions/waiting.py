"""Files that had scores and cannot be scored now, for reasons that are not their own.

A rescoring or the end of a challenge waits for them, and retries with growing pauses for a day, until an
operator starts it again or leaves them out.

Submissions without a rank ask for no operator: a lost file of theirs is left out at once, another one after
that day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tortoise.expressions import F, Q
from tortoise.functions import Count, Min
from tortoise.timezone import now

from collidium import challenges, operations, records
from collidium.database import in_chunks, transactional
from collidium.errors import Conflict, NotFound, Unavailable
from collidium.runtime.waiting import Backoff
from collidium.submissions.models import Rescoring, Submission, WaitingFile

if TYPE_CHECKING:
    from tortoise.queryset import QuerySet

    from collidium.submissions.replay import ReplayTarget

#: The pauses between attempts to score a file.
PAUSES: Final = Backoff(first=timedelta(seconds=30), longest=timedelta(hours=1))
#: How long they are tried again for a target, from when its first file could not be scored.
RETRIED_FOR: Final = timedelta(days=1)
_REASON_LENGTH: Final = 500


class FilesWait(Unavailable):
    """Files of submissions cannot be scored now; nothing has changed. ``retry_at``: None: not retried."""

    def __init__(self, number: int, reason: str, retry_at: datetime | None) -> None:
        when = f"retried after {retry_at:%Y-%m-%d %H:%M:%S} UTC" if retry_at else "no longer retried"
        super().__init__(
            f"waiting: {number} files: {reason}; {when} "
            "(collidium challenge waiting lists them, tries them again, and leaves one out)"
        )
        self.retry_at = retry_at


async def left_out(target: ReplayTarget) -> dict[str, str]:
    """Why submissions have no new scores that were left out, by id."""
    rows = await _of(target).filter(left_out_at__isnull=False)
    return {row.submission_id: row.reason for row in rows}


async def give_up(target: ReplayTarget, unranked: Collection[str] = ()) -> None:
    """Leave out submissions without a rank that were tried for a day: no operator has to decide about them.

    These are all that are not ``ranked``, and the ids ``unranked``.
    """
    rows = await _of(target).filter(left_out_at__isnull=True)
    tried = [row.submission_id for row in rows if _retry_at([row]) is None]
    for some in in_chunks(tried):
        ranked = map(
            str, await Submission.filter(id__in=some, standing="ranked").values_list("id", flat=True)
        )
        if without := set(some) - (set(ranked) - set(unranked)):
            pending = _of(target).filter(submission_id__in=without, left_out_at__isnull=True)
            await pending.update(left_out_at=now())


async def note(target: ReplayTarget, submission_ids: Iterable[str], reason: str) -> None:
    """Record that submissions cannot be scored now, and when they are tried again."""
    moment = now()
    scorer_version, truth_version = target.versions
    for submission_id in submission_ids:
        row = await _of(target).get_or_none(submission_id=submission_id)
        attempts = row.attempts + 1 if row else 1
        outcome = {"reason": reason[:_REASON_LENGTH], "retry_at": moment + PAUSES.pause(attempts)}
        # An operator may leave it out meanwhile, and another process may note it.
        pending = _of(target).filter(submission_id=submission_id, left_out_at__isnull=True)
        if await pending.update(attempts=F("attempts") + 1, **outcome):
            continue
        made = WaitingFile(
            challenge=target.challenge,
            submission_id=submission_id,
            scorer_version=scorer_version,
            truth_version=truth_version,
            since=moment,
            attempts=1,
            **outcome,
        )
        await WaitingFile.bulk_create([made], ignore_conflicts=True)


async def attempts(target: ReplayTarget) -> dict[str, int]:
    """How often submissions that wait were tried, by id."""
    rows = await _of(target).filter(left_out_at__isnull=True)
    return {row.submission_id: row.attempts for row in rows}


async def resolve_scored(target: ReplayTarget, done: Collection[str]) -> None:
    """Forget that these submissions could not be scored, which may be all others as well."""
    waits = await _of(target).filter(left_out_at__isnull=True).values_list("submission_id", flat=True)
    await resolve(target, [id_ for id_ in map(str, waits) if id_ in done])


async def resolve(target: ReplayTarget, submission_ids: Iterable[str]) -> None:
    """Forget that submissions could not be scored."""
    for some in in_chunks(list(submission_ids)):
        await _of(target).filter(submission_id__in=some).delete()


async def forget(target: ReplayTarget) -> None:
    """Forget all files that wait for a target, and those left out: it was applied or is ordered anew.

    Also those of other versions of the scorer, which are no longer installed.
    """
    rows = WaitingFile.filter(challenge=target.challenge)
    scorer_version, truth_version = target.versions
    await rows.filter(Q(truth_version=truth_version) | ~Q(scorer_version=scorer_version)).delete()


async def forget_preview(target: ReplayTarget) -> None:
    """Forget the files that wait for a preview, which is not retried, unless an order waits for them."""
    if not await Rescoring.exists(challenge=target.challenge, ended_at__isnull=True):
        await _of(target).filter(left_out_at__isnull=True).delete()


async def require_none(target: ReplayTarget) -> None:
    """Raise FilesWait if a file waits that is not left out."""
    rows = await _of(target).filter(left_out_at__isnull=True).order_by("retry_at", "id")
    if rows:
        raise FilesWait(len(rows), rows[0].reason, _retry_at(rows))


async def require_retried(target: ReplayTarget) -> None:
    """Raise FilesWait if files wait that are no longer retried."""
    rows = await _of(target).filter(left_out_at__isnull=True).order_by("retry_at", "id")
    if rows and _retry_at(rows) is None:
        raise FilesWait(len(rows), rows[0].reason, None)


def _retry_at(rows: Sequence[WaitingFile]) -> datetime | None:
    """When the files that wait for a target are tried again; None if they are not."""
    first = min(row.retry_at for row in rows)
    return first if first < min(row.since for row in rows) + RETRIED_FOR else None


async def is_paused(target: ReplayTarget) -> bool:
    """Whether files wait, and none is due.

    Those that are no longer retried are due once an hour, and when one has lost its rank.
    """
    pending = _of(target).filter(left_out_at__isnull=True)
    times = pending.annotate(first=Min("since"), next=Min("retry_at")).group_by("challenge")
    found = next(iter(await times.values("first", "next")), None)
    if found is None or found["next"] > now():
        return found is not None
    if found["next"] >= found["first"] + RETRIED_FOR:
        await give_up(target)
        await pending.filter(retry_at__lte=now()).update(retry_at=now() + PAUSES.longest)
    return False


async def retry_unranked(submission_ids: Collection[str]) -> None:
    """Make files that wait due: their submissions have lost their rank, and may hold up nothing now."""
    for some in in_chunks(list(submission_ids)):
        waits = WaitingFile.filter(submission_id__in=some, left_out_at__isnull=True)
        await waits.update(retry_at=now())


@dataclass(frozen=True, slots=True)
class Number:
    """How many files wait, of all challenges, and how many of them are no longer retried."""

    waiting: int
    not_retried: int


async def number() -> Number:
    """Count the files that wait."""
    by_target = WaitingFile.filter(left_out_at__isnull=True).annotate(
        number=Count("id"), first=Min("since"), next=Min("retry_at")
    )
    names = ("challenge", "scorer_version", "truth_version")
    rows = await by_target.group_by(*names).values(*names, "number", "first", "next")
    stopped = (row["number"] for row in rows if row["next"] >= row["first"] + RETRIED_FOR)
    return Number(sum(row["number"] for row in rows), sum(stopped))


async def restart(target: ReplayTarget) -> None:
    """Try the files that wait for a target again, for another day."""
    await _restart(_of(target))


async def _restart(rows: QuerySet[WaitingFile]) -> int:
    moment = now()
    return await rows.filter(left_out_at__isnull=True).update(since=moment, retry_at=moment, attempts=0)


@transactional
async def retry(challenge: str, *, actor: str, http_request_id: str) -> list[records.WaitingFile]:
    """Try the files that wait in a challenge again, now and for another day. Raises NotFound and Conflict."""
    await challenges.locked(challenge)
    tried = await _restart(WaitingFile.filter(challenge=challenge))
    if not tried:
        raise Conflict(f"nothing waits in {challenge!r}")
    await operations.record(actor, "retry_waiting", challenge, {"files": tried}, http_request_id)
    await _go_on(challenge)
    return await find(challenge)


async def _go_on(challenge: str) -> None:
    """Have an order that waits taken at once."""
    await Rescoring.filter(challenge=challenge, lease="", ended_at__isnull=True).update(leased_until=now())


async def reasons(challenge: str) -> dict[str, str]:
    """Why submissions to a challenge wait, by id: the first 10,000."""
    rows = WaitingFile.filter(challenge=challenge, left_out_at__isnull=True).order_by("id").limit(10_000)
    return {row.submission_id: row.reason for row in await rows}


async def find(challenge: str) -> list[records.WaitingFile]:
    """The files that wait or were left out in a challenge: the first 1,000. Raises NotFound."""
    rows = (
        await WaitingFile.filter(challenge=(await challenges.get(challenge)).name).order_by("id").limit(1000)
    )
    ids = [row.submission_id for row in rows]
    names = dict(await Submission.filter(id__in=ids).values_list("id", "hub_username"))
    pending: dict[tuple[str, str], list[WaitingFile]] = {}
    for row in rows:
        if row.left_out_at is None:
            pending.setdefault((row.scorer_version, row.truth_version), []).append(row)
    retry_at = {versions: _retry_at(some) for versions, some in pending.items()}
    return [
        _view(
            row,
            names.get(row.submission_id, ""),
            None if row.left_out_at else retry_at[row.scorer_version, row.truth_version],
        )
        for row in rows
    ]


@transactional
async def leave_out(
    challenge: str, submission_id: str, reason: str, *, actor: str, http_request_id: str
) -> records.WaitingFile:
    """Wait no longer for a submission, which loses its rank with the new scores.

    Raises NotFound, and Conflict if it was left out before.
    """
    await challenges.locked(challenge)
    rows = await WaitingFile.filter(challenge=challenge, submission_id=submission_id).order_by("id")
    if not rows:
        raise NotFound(f"nothing waits for the submission {submission_id[:64]!r} in {challenge[:64]!r}")
    pending = [row for row in rows if row.left_out_at is None]
    if not pending:
        raise Conflict(f"the submission {submission_id} was left out before")
    for row in pending:
        details = {"challenge": challenge, "reason": reason, "waited_for": row.reason}
        row.left_out_at, row.reason = now(), f"an operator left it out: {reason}"[:_REASON_LENGTH]
        await row.save()
        await operations.record(actor, "leave_out", submission_id, details, http_request_id)
    await _go_on(challenge)
    submission = await Submission.get(id=submission_id)
    return _view(pending[0], submission.hub_username, None)


def _view(row: WaitingFile, hub_username: str, retry_at: datetime | None) -> records.WaitingFile:
    return records.WaitingFile.of(row, hub_username=hub_username, retry_at=retry_at)


def _of(target: ReplayTarget) -> QuerySet[WaitingFile]:
    scorer_version, truth_version = target.versions
    return WaitingFile.filter(
        challenge=target.challenge, scorer_version=scorer_version, truth_version=truth_version
    )
