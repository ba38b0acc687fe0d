"""Calls about submitted models: what the server runs and scores, for their submitters and for operators."""

from __future__ import annotations

from pathlib import Path

from collidium.client.calls.call import Call, Credential, endpoint, idempotency_header, not_none, segment
from collidium.client.responses import listed, single
from collidium.records import Evaluation, Page


class EvaluationCalls:
    """Calls about submitted models and their evaluations."""

    @endpoint
    def submit_model(
        self, task: str, model: str | Path, manifest: str | Path, model_repo: str | None = None
    ) -> Call[Evaluation]:
        """Submit a model that the server runs; returns as soon as it is received.

        Parameters
        ----------
        task : str
        model, manifest : path
            An ONNX file, and a TOML file that describes its inputs and outputs.
        model_repo : str, optional
            As for ``submit``.

        Returns
        -------
        Evaluation
            The earlier evaluation if the same model was sent before and did not fail.

        Raises
        ------
        InvalidInput
            With all problems of the manifest in ``errors``.
        PaymentRequired
            If the balance does not cover the price of running a model.
        TooManyRequests
            If a quota is exhausted.
        """
        return Call(
            "POST",
            f"/v1/benchmark/{segment(task)}/submit/model",
            single(Evaluation),
            query=not_none(model_repo=model_repo or None),
            upload=Path(model),
            form={"manifest": Path(manifest).read_bytes().decode()},
            part="model",
            scores=True,
        )

    @endpoint
    def evaluations(
        self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Evaluation]]:
        """List the account's models that the server runs or ran, newest first.

        Parameters
        ----------
        state : str, optional
            Only evaluations in this state.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Evaluation
        """
        query = not_none(state=state, limit=limit, cursor=cursor)
        return Call("GET", "/v1/me/evaluations", listed(Evaluation), query=query)

    @endpoint
    def evaluation(self, evaluation_id: str) -> Call[Evaluation]:
        """Return the evaluation of one of the account's models.

        Raises
        ------
        NotFound
            If the account has no such evaluation.
        """
        return Call("GET", f"/v1/evaluations/{segment(evaluation_id)}", single(Evaluation))

    @endpoint
    def cancel_evaluation(self, evaluation_id: str) -> Call[Evaluation]:
        """Cancel the evaluation of one of the account's models.

        Raises
        ------
        NotFound
            If the account has no such evaluation.
        Conflict
            If it has ended.
        """
        return Call("POST", f"/v1/evaluations/{segment(evaluation_id)}/cancel", single(Evaluation))

    @endpoint
    def reproduce(self, submission_id: str) -> Call[Evaluation]:
        """Run the model of one of the account's submissions again, on public events.

        It runs once: repeated calls return the same evaluation.

        Parameters
        ----------
        submission_id : str

        Returns
        -------
        Evaluation

        Raises
        ------
        NotFound
            If there is no such submission.
        Forbidden
            If it belongs to another account.
        PaymentRequired
            If the balance does not cover the price of running a model.
        Conflict
            If it has no stored model, or the task no public events.
        """
        return Call("POST", f"/v1/submissions/{segment(submission_id)}/reproduce", single(Evaluation))

    @endpoint
    def admin_evaluations(
        self,
        *,
        state: str | None = None,
        user: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page[Evaluation]]:
        """List the models of all accounts that the server runs or ran, newest first.

        Parameters
        ----------
        state, user : str, optional
            Only evaluations in this state, of this account.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Evaluation

        Raises
        ------
        NotFound
            If there is no such account.
        """
        query = not_none(state=state, user=user, limit=limit, cursor=cursor)
        return Call("GET", "/admin/evaluations", listed(Evaluation), Credential.ADMIN, query=query)

    @endpoint
    def admin_cancel_evaluation(
        self, evaluation_id: str, *, idempotency_key: str | None = None
    ) -> Call[Evaluation]:
        """Cancel the evaluation of a model of any account.

        Parameters
        ----------
        evaluation_id : str
        idempotency_key : str, optional

        Returns
        -------
        Evaluation

        Raises
        ------
        NotFound
            If there is no such evaluation.
        Conflict
            If it has ended.
        """
        where = f"/admin/evaluations/{segment(evaluation_id)}/cancel"
        return Call(
            "POST", where, single(Evaluation), Credential.ADMIN, headers=idempotency_header(idempotency_key)
        )

    @endpoint
    def admin_rerun_evaluation(
        self, evaluation_id: str, *, idempotency_key: str | None = None
    ) -> Call[Evaluation]:
        """Repeat an evaluation that failed or was cancelled.

        Parameters
        ----------
        evaluation_id : str
        idempotency_key : str, optional

        Returns
        -------
        Evaluation

        Raises
        ------
        NotFound
            If there is no such evaluation.
        Conflict
            If it neither failed nor was cancelled, its model is deleted, or its challenge has final results.
        """
        where = f"/admin/evaluations/{segment(evaluation_id)}/rerun"
        return Call(
            "POST", where, single(Evaluation), Credential.ADMIN, headers=idempotency_header(idempotency_key)
        )
