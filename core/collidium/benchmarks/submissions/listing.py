"""Submissions in lists, for their accounts and for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tortoise.expressions import Q

from collidium import records
from collidium.benchmarks.models import Submission
from collidium.benchmarks.submissions import submitting
from collidium.benchmarks.submissions.submitting import SUBMISSION_ID
from collidium.benchmarks.tasks import tasklist
from collidium.errors import UnknownCursor

if TYPE_CHECKING:
    from collidium.platform import Platform


async def list_submissions(
    platform: Platform,
    *,
    limit: int,
    task: str | None = None,
    account_id: int | None = None,
    unverified: bool = False,
    after: str | None = None,
) -> list[records.Submission]:
    """Up to ``limit`` submissions, newest first, those that come after the submission ``after``.

    ``unverified``: only what reports metrics of itself that nobody has verified. Raises NotFound for a task
    that is neither installed nor was ever listed, and UnknownCursor for an ``after`` that is no submission.
    """
    query = Submission.all() if after is None else Submission.filter(await _after(after))
    if task is not None:
        await _require_known(platform, task)
        query = query.filter(task=task)
    if account_id is not None:
        query = query.filter(account_id=account_id)
    if unverified:
        query = query.filter(task__in=_self_reporting(platform), verified_at__isnull=True)
    return [submitting.view(row) for row in await query.order_by("-submitted_at", "-id").limit(limit)]


async def _after(submission_id: str) -> Q:
    row = None
    if SUBMISSION_ID.fullmatch(submission_id):
        row = await Submission.get_or_none(id=submission_id).only("id", "submitted_at")
    if row is None:
        raise UnknownCursor
    return Q(submitted_at__lt=row.submitted_at) | Q(submitted_at=row.submitted_at, id__lt=row.id)


async def _require_known(platform: Platform, task: str) -> None:
    if task not in platform.tasks.things and await tasklist.find_row(task) is None:
        raise tasklist.unknown(task)


def _self_reporting(platform: Platform) -> list[str]:
    """The installed tasks that have a metric which submitters measure themselves."""
    return [
        name
        for name, task in platform.tasks.things.items()
        if any(metric.self_reported for metric in task.card.metrics)
    ]
