"""Admission: whether a task accepts predictions of an account, and how many; days are UTC days.

A submission is admitted once, before its file is received, and the :class:`Admission` handed down. What money
depends on (task, ban, quota) is checked again in the transaction that keeps the submission.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from collidium.benchmarks import tasklist
from collidium.benchmarks.models import Submission
from collidium.benchmarks.rewards import midnight_before
from collidium.benchmarks.truth import truth_versions
from collidium.errors import TooManyRequests, Unavailable

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.benchmarks.truth.truth_versions import TruthRecord
    from collidium.contracts.task import Task
    from collidium.platform import Platform


@dataclass(frozen=True, slots=True)
class Admission:
    """An account whose predictions a task accepts, and the truth that they are scored against."""

    account: AccountView
    task: Task
    truth: TruthRecord
    #: Maximum size of the file, in bytes.
    largest_file: int


async def admit(platform: Platform, account: AccountView, task_name: str) -> Admission:
    """Admit an account to a task.

    Raises NotFound for a task that is not listed, and Unavailable for one that cannot score now.
    """
    status = await tasklist.status_of(platform.tasks, task_name)
    if not status.listed:
        raise tasklist.unknown(task_name)
    if status.reason is not None or status.truth_version is None:
        raise Unavailable(f"task {task_name!r} takes no submissions now: {status.reason}", retry_after=3600)
    task = platform.tasks.get(task_name)
    truth = await truth_versions.find(task_name, status.truth_version)
    return Admission(account, task, truth, truth_versions.largest_file(task, truth, platform.settings))


async def require_submission_left(account_id: int, task_name: str, per_day: int, now: datetime) -> None:
    """Raise TooManyRequests when the account has ``per_day`` kept submissions to the task since midnight.

    Exact in the transaction that keeps a submission, with the task's row locked; elsewhere it saves work.
    """
    midnight = midnight_before(now)
    kept = await Submission.filter(account_id=account_id, task=task_name, submitted_at__gte=midnight).count()
    if kept >= per_day:
        tomorrow = midnight + timedelta(days=1)
        raise TooManyRequests(
            f"{per_day} submissions a day are taken for task {task_name}; the next from {tomorrow:%Y-%m-%d} "
            "00:00 UTC. Checks are not counted",
            retry_after=int((tomorrow - now).total_seconds()) + 1,
        )
