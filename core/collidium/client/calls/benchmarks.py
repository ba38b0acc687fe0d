"""Calls about tasks, submissions and leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, Credential, filtered, segment
from collidium.records import BestStep, Checked, Page, Place, Receipt, Submission, TaskCard


class Links(TypedDict, total=False):
    """Links of a submission to change; None removes one."""

    model_repo: str | None
    code_url: str | None
    paper_url: str | None


def tasks() -> Call[Page[TaskCard]]:
    return Call("GET", "/v1/benchmark/tasks", listed(TaskCard), Credential.NONE)


def task(name: str) -> Call[TaskCard]:
    return Call("GET", f"/v1/benchmark/{segment(name)}", single(TaskCard), Credential.NONE)


def submit(task_name: str, path: Path, model_repo: str | None) -> Call[Receipt]:
    query = {"model_repo": model_repo} if model_repo else {}
    where = f"/v1/benchmark/{segment(task_name)}/submit"
    return Call("POST", where, single(Receipt), query=query, upload=path)


def check(task_name: str, path: Path) -> Call[Checked]:
    where = f"/v1/benchmark/{segment(task_name)}/check"
    return Call("POST", where, single(Checked), upload=path)


def leaderboard(
    task_name: str,
    limit: int | None,
    cursor: str | None,
    *,
    pareto: bool,
    user: str | None,
    model_repo: str | None,
) -> Call[Page[Place]]:
    where = f"/v1/leaderboard/{segment(task_name)}"
    on_front = "true" if pareto else None
    query = filtered(limit, cursor, pareto=on_front, hub_username=user, model_repo=model_repo)
    return Call("GET", where, listed(Place), Credential.NONE, query=query)


def leaderboard_history(task_name: str, metric: str | None, limit: int | None) -> Call[Page[BestStep]]:
    where = f"/v1/leaderboard/{segment(task_name)}/history"
    query = filtered(limit, None, metric=metric)
    return Call("GET", where, listed(BestStep), Credential.NONE, query=query)


def submissions(task_name: str | None, limit: int | None, cursor: str | None) -> Call[Page[Submission]]:
    query = filtered(limit, cursor, task=task_name)
    return Call("GET", "/v1/me/submissions", listed(Submission), query=query)


def submission(submission_id: str) -> Call[Submission]:
    where = f"/v1/submissions/{segment(submission_id)}"
    return Call("GET", where, single(Submission), Credential.NONE)


def set_links(submission_id: str, links: Links) -> Call[Submission]:
    where = f"/v1/submissions/{segment(submission_id)}"
    return Call("PATCH", where, single(Submission), json={**links})
