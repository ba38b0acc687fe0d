"""Calls about tasks, submissions and leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

from collidium.client.calls.call import Call, Credential, endpoint, not_none, segment
from collidium.client.responses import content, listed, single, upload_address
from collidium.records import (
    BestStep,
    Challenge,
    Checked,
    Comparison,
    Page,
    Place,
    Quota,
    Receipt,
    Submission,
    TaskCard,
)


class Links(TypedDict, total=False):
    """Links of a submission; None removes one."""

    model_repo: str | None
    code_url: str | None
    paper_url: str | None
    #: Whether it is a candidate for the final results of its challenge.
    final: bool


class BenchmarkCalls:
    """Calls about tasks, submissions and leaderboards."""

    @endpoint
    def tasks(self) -> Call[Page[TaskCard]]:
        """List the tasks of the server."""
        return Call("GET", "/v1/benchmark/tasks", listed(TaskCard), Credential.NONE)

    @endpoint
    def task(self, name: str) -> Call[TaskCard]:
        """Return the card of a task.

        Raises
        ------
        NotFound
            If the server has no such task.
        """
        return Call("GET", f"/v1/benchmark/{segment(name)}", single(TaskCard), Credential.NONE)

    @endpoint
    def challenges(self) -> Call[Page[Challenge]]:
        """List the challenges, the next to close first; those without a deadline last."""
        return Call("GET", "/v1/challenges", listed(Challenge), Credential.NONE)

    @endpoint
    def challenge(self, name: str) -> Call[Challenge]:
        """Return a challenge with the card of its task.

        Raises
        ------
        NotFound
            If there is no such challenge.
        """
        return Call("GET", f"/v1/challenges/{segment(name)}", single(Challenge), Credential.NONE)

    @endpoint
    def quota(self, name: str) -> Call[Quota]:
        """Return the number of submissions to a challenge that the account has left today.

        Parameters
        ----------
        name : str
            Name of the challenge.

        Returns
        -------
        Quota

        Raises
        ------
        NotFound
            If there is no such challenge.
        """
        return Call("GET", f"/v1/challenges/{segment(name)}/quota", single(Quota))

    @endpoint
    def leaderboard(
        self,
        task: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        pareto: bool = False,
        user: str | None = None,
        model_repo: str | None = None,
        every: bool = False,
    ) -> Call[Page[Place]]:
        """Return a page of the leaderboard of a task or challenge, best first.

        Parameters
        ----------
        task : str
            Name of a task or challenge, as in all calls with a task.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.
        pareto : bool
            Only places on the Pareto front of the task's two metrics.
        user, model_repo : str, optional
            Only places of this account or model, with their ranks among all.
        every : bool
            Every submission instead of the best of each participant.

        Returns
        -------
        Page of Place

        Raises
        ------
        NotFound
            If there is no such task or challenge.
        InvalidInput
            If ``pareto`` is set for a task without a Pareto front.
        """
        where = f"/v1/leaderboard/{segment(task)}"
        wanted = not_none(pareto=pareto or None, all=every or None, hub_username=user, model_repo=model_repo)
        query = wanted | not_none(limit=limit, cursor=cursor)
        return Call("GET", where, listed(Place), Credential.NONE, query=query)

    @endpoint
    def results(
        self, challenge: str, *, as_csv: bool = False, every: bool = False, status: str | None = None
    ) -> Call[bytes]:
        """Download all ranks of a challenge.

        Parameters
        ----------
        challenge : str
        as_csv : bool
            CSV instead of JSON.
        every : bool
            Every submission instead of the best of each participant.
        status : str, optional
            Only submissions that are ``disqualified`` or ``withdrawn``.

        Returns
        -------
        bytes

        Raises
        ------
        NotFound
            If there is no such challenge.
        """
        query = not_none(format="csv" if as_csv else "json", all=every or None, status=status)
        where = f"/v1/challenges/{segment(challenge)}/results"
        return Call("GET", where, content, Credential.NONE, query=query)

    @endpoint
    def leaderboard_history(
        self, task: str, metric: str | None = None, *, limit: int | None = None
    ) -> Call[Page[BestStep]]:
        """List the submissions that improved the best value of a metric, oldest first.

        Parameters
        ----------
        task : str
        metric : str, optional
            The primary metric by default.
        limit : int, optional
            Only the latest; 1,000 by default.

        Returns
        -------
        Page of BestStep
            Based on the current scores, including self-reported values that are not verified.

        Raises
        ------
        NotFound
            If there is no such task or challenge.
        InvalidInput
            If the task has no such metric.
        """
        where = f"/v1/leaderboard/{segment(task)}/history"
        query = not_none(metric=metric, limit=limit)
        return Call("GET", where, listed(BestStep), Credential.NONE, query=query)

    @endpoint
    def self_reported(
        self, task: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Submission]]:
        """List the self-reported submissions, which are not ranked, newest first.

        Parameters
        ----------
        task : str
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Submission
            Empty unless the card of the task has ``ranks_measured``.

        Raises
        ------
        NotFound
            If there is no such task or challenge.
        """
        where = f"/v1/leaderboard/{segment(task)}/self-reported"
        query = not_none(limit=limit, cursor=cursor)
        return Call("GET", where, listed(Submission), Credential.NONE, query=query)

    @endpoint
    def submissions(
        self,
        *,
        task: str | None = None,
        challenge: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page[Submission]]:
        """List the account's submissions, newest first, without their earlier scores.

        Parameters
        ----------
        task, challenge : str, optional
            Only submissions to this task or challenge.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Submission
        """
        query = not_none(task=task, challenge=challenge, limit=limit, cursor=cursor)
        return Call("GET", "/v1/me/submissions", listed(Submission), query=query)

    @endpoint
    def submission(self, submission_id: str) -> Call[Submission]:
        """Return a submission.

        Raises
        ------
        NotFound
            If there is no such submission.
        """
        where = f"/v1/submissions/{segment(submission_id)}"
        return Call("GET", where, single(Submission), Credential.NONE)

    @endpoint
    def compare(self, submission_id: str, other: str) -> Call[Comparison]:
        """Compare the scores of two submissions to a task.

        Parameters
        ----------
        submission_id, other : str

        Returns
        -------
        Comparison
            Differences, the first submission minus the other, with standard errors.

        Raises
        ------
        NotFound
            If one of them does not exist.
        InvalidInput
            If they belong to different tasks.
        """
        where = f"/v1/submissions/{segment(submission_id)}/comparison"
        return Call("GET", where, single(Comparison), Credential.NONE, query={"other": other})

    @endpoint
    def withdraw(self, submission_id: str) -> Call[Submission]:
        """Withdraw one of the account's submissions permanently while its challenge is open.

        Parameters
        ----------
        submission_id : str

        Returns
        -------
        Submission

        Raises
        ------
        NotFound
            If there is no such submission.
        Forbidden
            If it belongs to another account.
        Conflict
            If the challenge is closed, or the submission has earned credits or is not ranked.
        """
        where = f"/v1/submissions/{segment(submission_id)}/withdraw"
        return Call("POST", where, single(Submission))

    @endpoint
    def set_links(self, submission_id: str, **links: Unpack[Links]) -> Call[Submission]:
        """Set or remove the links of one of the account's submissions, or choose it for the final results.

        Parameters
        ----------
        submission_id : str
        model_repo : str or None, optional
            ``namespace/name`` on the hub. The server checks it with the token and sets ``model_claim``.
        code_url, paper_url : str or None, optional
            HTTPS addresses.
        final : bool, optional
            Whether it is a candidate for the final results; by default the best submissions are.

        Returns
        -------
        Submission

        Raises
        ------
        InvalidInput
            With all problems in ``errors``.
        NotFound
            If there is no such submission.
        Forbidden
            If it belongs to another account.
        Conflict
            If it cannot be chosen.
        TooManyRequests
            If models are checked too often.
        """
        where = f"/v1/submissions/{segment(submission_id)}"
        return Call("PATCH", where, single(Submission), json={**links})

    @endpoint
    def submit_from_hub(self, task: str, source: str, model_repo: str | None = None) -> Call[Receipt]:
        """Submit predictions from a dataset repository of the hub, which the server downloads with the token.

        Parameters
        ----------
        task : str
        source : str
            ``NAMESPACE/NAME:PATH@COMMIT``. A branch or tag is resolved to its commit.
        model_repo : str, optional
            As for ``submit``.

        Returns
        -------
        Receipt

        Raises
        ------
        NotFound
            If the token's owner can read no such repository, revision or file.
        InvalidInput
            With all problems of the file in ``errors``.
        TooManyRequests
            If a quota is exhausted.
        """
        where = f"/v1/benchmark/{segment(task)}/submit/from-hub"
        body = not_none(source=source, model_repo=model_repo or None)
        return Call("POST", where, single(Receipt), json=body, scores=True)


def submit(task_name: str, path: Path, model_repo: str | None) -> Call[Receipt]:
    where, query = f"/v1/benchmark/{segment(task_name)}/submit", not_none(model_repo=model_repo or None)
    return Call(
        "POST", where, single(Receipt), query=query, upload=path, scores=True, resumable=upload_address
    )


def check(task_name: str, path: Path) -> Call[Checked]:
    where = f"/v1/benchmark/{segment(task_name)}/check"
    return Call("POST", where, single(Checked), upload=path, scores=True)
