"""Files that had scores and cannot be scored now, for reasons that are not their own.

A rescoring or the end of a challenge waits for them, and retries with growing pauses, until an operator
leaves them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tortoise.expressions import F, Q
from tortoise.timezone import now

from collidium import operations, records
from collidium.benchmarks import challenges
from collidium.benchmarks.models import Rescoring, Submission, WaitingFile
from collidium.database import in_chunks, transactional
from collidium.errors import Conflict, NotFound, Unavailable
from collidium.runtime.waiting import Backoff

if TYPE_CHECKING:
    from tortoise.queryset import QuerySet

    from collidium.benchmarks.submissions.replay import Target

#: The pauses between attempts to score a file.
PAUSES: Final = Backoff(first=timedelta(seconds=30), longest=timedelta(hours=1))
_REASON_LENGTH: Final = 500


class FilesWait(Unavailable):
    """Files of submissions cannot be scored now; nothing has changed."""

    def __init__(self, number: int, reason: str, retry_at: datetime) -> None:
        super().__init__(
            f"waiting: {number} files: {reason}; retried after {retry_at:%Y-%m-%d %H:%M:%S} UTC "
            "(collidium challenge waiting lists them, and leaves one out)"
        )
        self.retry_at = retry_at


async def left_out(target: Target) -> dict[str, str]:
    """Why submissions have no new scores that an operator left out, by id."""
    rows = await _of(target).filter(left_out_at__isnull=False)
    return {row.submission_id: f"an operator left it out: {row.reason}" for row in rows}


async def note(target: Target, submission_ids: Iterable[str], reason: str) -> None:
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


async def attempts(target: Target) -> dict[str, int]:
    """How often submissions that wait were tried, by id."""
    rows = await _of(target).filter(left_out_at__isnull=True)
    return {row.submission_id: row.attempts for row in rows}


async def resolve_scored(target: Target, done: Collection[str]) -> None:
    """Forget that these submissions could not be scored, which may be all others as well."""
    waits = await _of(target).filter(left_out_at__isnull=True).values_list("submission_id", flat=True)
    await resolve(target, [id_ for id_ in map(str, waits) if id_ in done])


async def resolve(target: Target, submission_ids: Iterable[str]) -> None:
    """Forget that submissions could not be scored."""
    for some in in_chunks(list(submission_ids)):
        await _of(target).filter(submission_id__in=some).delete()


async def forget(target: Target) -> None:
    """Forget all files that wait for a target, and those left out: it was applied or is ordered anew.

    Also those of other versions of the scorer, which are no longer installed.
    """
    rows = WaitingFile.filter(challenge=target.challenge)
    scorer_version, truth_version = target.versions
    await rows.filter(Q(truth_version=truth_version) | ~Q(scorer_version=scorer_version)).delete()


async def forget_preview(target: Target) -> None:
    """Forget the files that wait for a preview, which is not retried, unless an order waits for them."""
    if not await Rescoring.exists(challenge=target.challenge, ended_at__isnull=True):
        await _of(target).filter(left_out_at__isnull=True).delete()


async def require_none(target: Target) -> None:
    """Raise FilesWait if a file waits that is not left out."""
    rows = await _of(target).filter(left_out_at__isnull=True).order_by("retry_at", "id")
    if rows:
        raise FilesWait(len(rows), rows[0].reason, rows[0].retry_at)


async def is_paused(target: Target) -> bool:
    """Whether files wait, and none is due."""
    rows = _of(target).filter(left_out_at__isnull=True)
    return await rows.exists() and not await rows.filter(retry_at__lte=now()).exists()


async def number() -> int:
    """The number of files that wait, of all challenges."""
    return await WaitingFile.filter(left_out_at__isnull=True).count()


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
    return [_view(row, names.get(row.submission_id, "")) for row in rows]


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
        row.left_out_at, row.reason = now(), reason[:_REASON_LENGTH]
        await row.save()
        await operations.record(actor, "leave_out", submission_id, details, http_request_id)
    # An order that waits goes on at once.
    await Rescoring.filter(challenge=challenge, lease="", ended_at__isnull=True).update(leased_until=now())
    submission = await Submission.get(id=submission_id)
    return _view(pending[0], submission.hub_username)


def _view(row: WaitingFile, hub_username: str) -> records.WaitingFile:
    return records.WaitingFile.of(row, hub_username=hub_username)


def _of(target: Target) -> QuerySet[WaitingFile]:
    scorer_version, truth_version = target.versions
    return WaitingFile.filter(
        challenge=target.challenge, scorer_version=scorer_version, truth_version=truth_version
    )
