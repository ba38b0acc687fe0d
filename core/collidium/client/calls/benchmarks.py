"""Calls about tasks, submissions and leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, Credential, filtered, segment
from collidium.records import BestStep, Checked, Page, Place, Receipt, Submission, TaskCard


class Links(TypedDict, total=False):
    """Links of a submission to change; None removes one."""

    model_repo: str | None
    code_url: str | None
    paper_url: str | None


def tasks() -> Call[Page[TaskCard]]:
    """The tasks that the server lists."""
    return Call("GET", "/v1/benchmark/tasks", listed(TaskCard), Credential.NONE)


def task(name: str) -> Call[TaskCard]:
    """What one task asks for."""
    return Call("GET", f"/v1/benchmark/{segment(name)}", single(TaskCard), Credential.NONE)


def submit(task_name: str, path: Path, model_repo: str | None) -> Call[Receipt]:
    query = {"model_repo": model_repo} if model_repo else {}
    where = f"/v1/benchmark/{segment(task_name)}/submit"
    return Call("POST", where, single(Receipt), query=query, upload=path)


def check(task_name: str, path: Path) -> Call[Checked]:
    where = f"/v1/benchmark/{segment(task_name)}/check"
    return Call("POST", where, single(Checked), upload=path)


def leaderboard(
    task: str,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    pareto: bool = False,
    user: str | None = None,
    model_repo: str | None = None,
) -> Call[Page[Place]]:
    """A page of the task's leaderboard, best first; with ``pareto`` only the places on its front.

    With ``user`` or ``model_repo`` only theirs, with the ranks that they have among all.
    """
    where = f"/v1/leaderboard/{segment(task)}"
    on_front = "true" if pareto else None
    query = filtered(limit, cursor, pareto=on_front, hub_username=user, model_repo=model_repo)
    return Call("GET", where, listed(Place), Credential.NONE, query=query)


def leaderboard_history(
    task: str, metric: str | None = None, *, limit: int | None = None
) -> Call[Page[BestStep]]:
    """The submissions that were the best in a metric when they came, oldest first.

    The primary metric where none is named; by the scores that count now, with self-reported values that
    nobody has verified. At most the last ``limit``, or 1,000.
    """
    where = f"/v1/leaderboard/{segment(task)}/history"
    query = filtered(limit, None, metric=metric)
    return Call("GET", where, listed(BestStep), Credential.NONE, query=query)


def submissions(
    *, task: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[Page[Submission]]:
    """A page of the account's submissions, newest first, without their earlier scores."""
    query = filtered(limit, cursor, task=task)
    return Call("GET", "/v1/me/submissions", listed(Submission), query=query)


def submission(submission_id: str) -> Call[Submission]:
    """A submission as it is kept."""
    where = f"/v1/submissions/{segment(submission_id)}"
    return Call("GET", where, single(Submission), Credential.NONE)


def set_links(submission_id: str, **links: Unpack[Links]) -> Call[Submission]:
    """Set links of a submission of the account, or remove them by None; what is not named stays.

    ``model_repo`` is ``namespace/name`` on the hub, ``code_url`` and ``paper_url`` are HTTPS addresses.
    A model that is named is checked with the token: ``model_claim``. InvalidInput lists all problems.
    """
    where = f"/v1/submissions/{segment(submission_id)}"
    return Call("PATCH", where, single(Submission), json={**links})
