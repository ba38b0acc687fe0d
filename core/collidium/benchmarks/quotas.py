"""How often an account may submit and be rewarded; days are UTC days.

A quota is decided in the transaction that keeps a submission, with the task's row locked: requests at once
never pass it together. Before that it is only looked at, to spare work.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from collidium import accounts
from collidium.benchmarks.models import Submission
from collidium.errors import TooManyRequests


async def require_submission_left(account_id: int, task_name: str, per_day: int, now: datetime) -> None:
    """Raise TooManyRequests when the account has ``per_day`` kept submissions to the task since midnight."""
    midnight = _midnight(now)
    kept = await Submission.filter(account_id=account_id, task=task_name, submitted_at__gte=midnight).count()
    if kept >= per_day:
        tomorrow = midnight + timedelta(days=1)
        raise TooManyRequests(
            f"{per_day} submissions a day are taken for task {task_name}; the next from {tomorrow:%Y-%m-%d} "
            "00:00 UTC. Checks are not counted",
            retry_after=int((tomorrow - now).total_seconds()) + 1,
        )


async def rewards_today(submission: Submission, metrics: Iterable[str]) -> dict[str, int]:
    """How often the account was rewarded for each metric of the task, of all it submitted that day."""
    midnight = _midnight(submission.submitted_at)
    ids = await Submission.filter(
        account_id=submission.account_id,
        task=submission.task,
        submitted_at__gte=midnight,
        submitted_at__lt=midnight + timedelta(days=1),
        credits_earned__gt=0,
    ).values_list("id", flat=True)
    return {
        metric: await accounts.count_entries(
            submission.account_id, "benchmark_best", [reward_reference(str(id_), metric) for id_ in ids]
        )
        for metric in metrics
    }


def reward_reference(submission_id: str, metric: str) -> str:
    """What the ledger entry of a reward refers to."""
    return f"{submission_id}:{metric}"


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
