"""Calls about tasks, submissions and leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

from collidium.client.answers import content, listed, single, upload_address
from collidium.client.calls.call import Call, Credential, endpoint, given, segment
from collidium.records import (
    BestStep,
    Challenge,
    Checked,
    Comparison,
    Evaluation,
    Page,
    Place,
    Quota,
    Receipt,
    Submission,
    TaskCard,
)


class Links(TypedDict, total=False):
    """Links of a submission to change; None removes one."""

    model_repo: str | None
    code_url: str | None
    paper_url: str | None
    #: Whether it is chosen for the final results of its challenge.
    final: bool


class BenchmarkCalls:
    """Calls about tasks, submissions and leaderboards."""

    @endpoint
    def tasks(self) -> Call[Page[TaskCard]]:
        """The tasks that the server lists."""
        return Call("GET", "/v1/benchmark/tasks", listed(TaskCard), Credential.NONE)

    @endpoint
    def task(self, name: str) -> Call[TaskCard]:
        """The card of a task."""
        return Call("GET", f"/v1/benchmark/{segment(name)}", single(TaskCard), Credential.NONE)

    @endpoint
    def challenges(self) -> Call[Page[Challenge]]:
        """The challenges, the next to close first; the endless ones of the tasks last."""
        return Call("GET", "/v1/challenges", listed(Challenge), Credential.NONE)

    @endpoint
    def challenge(self, name: str) -> Call[Challenge]:
        """A challenge, with the card of its task."""
        return Call("GET", f"/v1/challenges/{segment(name)}", single(Challenge), Credential.NONE)

    @endpoint
    def quota(self, name: str) -> Call[Quota]:
        """Return the number of submissions to a challenge that the account has left today.

        Parameters
        ----------
        name : str
            That of the challenge.

        Returns
        -------
        Quota
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
        """A page of the leaderboard of a task or challenge, best first.

        Parameters
        ----------
        task : str
            Or the name of a challenge, as in all calls about a task.
        limit, cursor
            The page: its length, and ``next_cursor`` of the page before.
        pareto : bool
            Only places on the Pareto front of the task's two metrics.
        user, model_repo : str, optional
            Only places of an account, or of a model; with their ranks among all.
        every : bool
            Every submission, and not the best of each participant alone.

        Returns
        -------
        Page of Place
        """
        where = f"/v1/leaderboard/{segment(task)}"
        wanted = given(pareto=pareto or None, all=every or None, hub_username=user, model_repo=model_repo)
        query = wanted | given(limit=limit, cursor=cursor)
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
            CSV in place of JSON.
        every : bool
            Every submission, and not the best of each participant alone.
        status : str, optional
            Only submissions that are ``disqualified`` or ``withdrawn``.

        Returns
        -------
        bytes
        """
        query = given(format="csv" if as_csv else "json", all=every or None, status=status)
        where = f"/v1/challenges/{segment(challenge)}/results"
        return Call("GET", where, content, Credential.NONE, query=query)

    @endpoint
    def leaderboard_history(
        self, task: str, metric: str | None = None, *, limit: int | None = None
    ) -> Call[Page[BestStep]]:
        """The submissions that were the best in a metric when they came, oldest first.

        Parameters
        ----------
        task : str
        metric : str, optional
            The primary metric by default.
        limit : int, optional
            Only the last of them; 1,000 by default.

        Returns
        -------
        Page of BestStep
            By the scores that count now, with self-reported values that are not verified.
        """
        where = f"/v1/leaderboard/{segment(task)}/history"
        query = given(metric=metric, limit=limit)
        return Call("GET", where, listed(BestStep), Credential.NONE, query=query)

    @endpoint
    def self_reported(
        self, task: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Submission]]:
        """List the self-reported submissions, which are not ranked, newest first.

        Parameters
        ----------
        task : str
        limit, cursor
            The page.

        Returns
        -------
        Page of Submission
            Empty for tasks whose card has no ``ranks_measured``.
        """
        where = f"/v1/leaderboard/{segment(task)}/self-reported"
        query = given(limit=limit, cursor=cursor)
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
            Only those to a task, to a challenge.
        limit, cursor
            The page.

        Returns
        -------
        Page of Submission
        """
        query = given(task=task, challenge=challenge, limit=limit, cursor=cursor)
        return Call("GET", "/v1/me/submissions", listed(Submission), query=query)

    @endpoint
    def submit_model(
        self, task: str, model: str | Path, manifest: str | Path, model_repo: str | None = None
    ) -> Call[Evaluation]:
        """Submit a model, which the server runs; returns when it is received.

        Parameters
        ----------
        task : str
        model, manifest : path
            An ONNX file, and what its inputs and outputs are (TOML).
        model_repo : str, optional
            As for ``submit``.

        Returns
        -------
        Evaluation
            Of the same model that was sent before, where that has not failed.

        Raises
        ------
        InvalidInput
            With all problems of the manifest.
        """
        return Call(
            *("POST", f"/v1/benchmark/{segment(task)}/submit/model", single(Evaluation)),
            query=given(model_repo=model_repo or None),
            upload=Path(model),
            form={"manifest": Path(manifest).read_bytes().decode()},
            part="model",
            scores=True,
        )

    @endpoint
    def evaluations(
        self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Evaluation]]:
        """List the account's submitted models that the server runs or ran, newest first.

        Parameters
        ----------
        state : str, optional
            Only those in a state.
        limit, cursor
            The page.

        Returns
        -------
        Page of Evaluation
        """
        query = given(state=state, limit=limit, cursor=cursor)
        return Call("GET", "/v1/me/evaluations", listed(Evaluation), query=query)

    @endpoint
    def evaluation(self, evaluation_id: str) -> Call[Evaluation]:
        """How far a model of the account is, and what became of it."""
        return Call("GET", f"/v1/evaluations/{segment(evaluation_id)}", single(Evaluation))

    @endpoint
    def cancel_evaluation(self, evaluation_id: str) -> Call[Evaluation]:
        """Cancel the evaluation of a model of the account."""
        return Call("POST", f"/v1/evaluations/{segment(evaluation_id)}/cancel", single(Evaluation))

    @endpoint
    def reproduce(self, submission_id: str) -> Call[Evaluation]:
        """Have the server run the model of a submission of the account on public events, once."""
        return Call("POST", f"/v1/submissions/{segment(submission_id)}/reproduce", single(Evaluation))

    @endpoint
    def submission(self, submission_id: str) -> Call[Submission]:
        """A submission as it is kept."""
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
        """
        where = f"/v1/submissions/{segment(submission_id)}/comparison"
        return Call("GET", where, single(Comparison), Credential.NONE, query={"other": other})

    @endpoint
    def withdraw(self, submission_id: str) -> Call[Submission]:
        """Withdraw a submission of the account while its challenge is open, for good."""
        where = f"/v1/submissions/{segment(submission_id)}/withdraw"
        return Call("POST", where, single(Submission))

    @endpoint
    def set_links(self, submission_id: str, **links: Unpack[Links]) -> Call[Submission]:
        """Set links of a submission of the account, or remove them by None; choose it for final results.

        Parameters
        ----------
        submission_id : str
        model_repo : str or None, optional
            ``namespace/name`` on the hub; checked with the token, with the result in ``model_claim``.
        code_url, paper_url : str or None, optional
            HTTPS addresses.
        final : bool, optional
            Whether the final results of its challenge are chosen from it; of all by default, the best count.

        Returns
        -------
        Submission

        Raises
        ------
        InvalidInput
            With all problems.
        """
        where = f"/v1/submissions/{segment(submission_id)}"
        return Call("PATCH", where, single(Submission), json={**links})

    @endpoint
    def submit_from_hub(self, task: str, source: str, model_repo: str | None = None) -> Call[Receipt]:
        """Submit predictions in a dataset repository of the hub, which the server downloads with the token.

        Parameters
        ----------
        task : str
        source : str
            ``NAMESPACE/NAME:PATH@COMMIT``; the commit of a branch or tag is kept with the submission.
        model_repo : str, optional
            As for ``submit``.

        Returns
        -------
        Receipt

        Raises
        ------
        NotFound
            If there is no such repository, revision or file that the token's owner may read.
        InvalidInput
            With all problems of the file.
        """
        where = f"/v1/benchmark/{segment(task)}/submit/from-hub"
        body = given(source=source, model_repo=model_repo or None)
        return Call("POST", where, single(Receipt), json=body, scores=True)


def submit(task_name: str, path: Path, model_repo: str | None) -> Call[Receipt]:
    where, query = f"/v1/benchmark/{segment(task_name)}/submit", given(model_repo=model_repo or None)
    return Call(
        "POST", where, single(Receipt), query=query, upload=path, scores=True, resumable=upload_address
    )


def check(task_name: str, path: Path) -> Call[Checked]:
    where = f"/v1/benchmark/{segment(task_name)}/check"
    return Call("POST", where, single(Checked), upload=path, scores=True)
