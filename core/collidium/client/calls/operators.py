"""Calls of operators, and of those who look after a server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import Any

from collidium import __version__
from collidium.client.answers import PROBLEM, Answer, listed, readiness, single
from collidium.client.calls.call import Call, Credential, endpoint, given, keyed, segment
from collidium.errors import InvalidInput, NotFound, UpstreamError
from collidium.records import (
    Account,
    AuditEntry,
    Banned,
    ChannelUsage,
    DayUsage,
    Evaluation,
    Failures,
    Frozen,
    Granted,
    Health,
    OperatedRequest,
    Operator,
    OutputFile,
    Overview,
    Page,
    Readiness,
    Refunds,
    SimulationRequest,
    Submission,
    TaskStatus,
    Transaction,
    Usage,
)


class OperatorCalls:
    """Calls of operators, and of those who look after a server."""

    @endpoint
    def admin_grant(
        self, hub_username: str, delta: Decimal, reason: str, *, idempotency_key: str | None = None
    ) -> Call[Granted]:
        """Give credits to an account, or take them.

        Parameters
        ----------
        hub_username : str
        delta : decimal.Decimal
            Credits, to three decimal places; negative to take them.
        reason : str
            For the ledger.

        Returns
        -------
        Granted

        Raises
        ------
        InvalidInput
            If ``delta`` is not a finite number.
        """
        if not delta.is_finite() or not isfinite(delta):
            raise InvalidInput(f"{delta} is no amount of credits")
        # As a float the number keeps its three places up to far beyond any balance.
        body = {"hub_username": hub_username, "delta": float(delta), "reason": reason}
        headers = keyed(idempotency_key)
        return Call("POST", "/admin/grant", single(Granted), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_overview(self) -> Call[Overview]:
        """The platform at one look. Raises UpstreamError where the server is too old to report it."""
        return Call("GET", "/admin/overview", _overview, Credential.ADMIN)

    @endpoint
    def admin_ban(
        self,
        hub_username: str,
        banned: bool = True,
        *,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Banned]:
        """Ban an account, or end its ban.

        Parameters
        ----------
        hub_username : str
        banned : bool
        note : str, optional
            For the audit log.

        Returns
        -------
        Banned
        """
        body = given(hub_username=hub_username, banned=banned, note=note)
        headers = keyed(idempotency_key)
        return Call("POST", "/admin/ban", single(Banned), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_freeze(
        self, frozen: bool = True, *, note: str | None = None, idempotency_key: str | None = None
    ) -> Call[Frozen]:
        """Reject new simulation requests, or accept them again.

        Parameters
        ----------
        frozen : bool
        note : str, optional
            For the audit log.

        Returns
        -------
        Frozen
        """
        query, headers = given(frozen=frozen, note=note), keyed(idempotency_key)
        return Call("POST", "/admin/freeze", single(Frozen), Credential.ADMIN, query=query, headers=headers)

    @endpoint
    def admin_audit(self, *, limit: int | None = None, cursor: str | None = None) -> Call[Page[AuditEntry]]:
        """A page of what operators did, newest first."""
        query = given(limit=limit, cursor=cursor)
        return Call("GET", "/admin/audit", listed(AuditEntry), Credential.ADMIN, query=query)

    @endpoint
    def admin_operators(self) -> Call[Page[Operator]]:
        """All operators with tokens of their own, also withdrawn ones."""
        return Call("GET", "/admin/operators", listed(Operator), Credential.ADMIN)

    @endpoint
    def admin_add_operator(
        self, name: str, scopes: Sequence[str], *, challenge: str | None = None
    ) -> Call[Operator]:
        """Add an operator.

        Parameters
        ----------
        name : str
        scopes : sequence of str
            What the operator may do.
        challenge : str, optional
            Makes the operator an organiser of this challenge.

        Returns
        -------
        Operator
            Its ``token`` is shown only here.
        """
        body = given(name=name, scopes=list(scopes), challenge=challenge)
        return Call("POST", "/admin/operators", single(Operator), Credential.ADMIN, json=body)

    @endpoint
    def admin_withdraw_operator(self, name: str, *, idempotency_key: str | None = None) -> Call[Operator]:
        """Withdraw an operator, whose token is refused from then on."""
        where = f"/admin/operators/{segment(name)}/withdraw"
        return Call("POST", where, single(Operator), Credential.ADMIN, headers=keyed(idempotency_key))

    @endpoint
    def admin_account(self, hub_username: str) -> Call[Account]:
        """Any account."""
        return Call("GET", f"/admin/accounts/{segment(hub_username)}", single(Account), Credential.ADMIN)

    @endpoint
    def admin_accounts(
        self,
        *,
        search: str = "",
        banned: bool | None = None,
        sort: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page[Account]]:
        """List accounts.

        Parameters
        ----------
        search : str
            Part of their names.
        banned : bool, optional
            Only banned accounts, or only others.
        sort : str, optional
            ``newest`` (default), ``name`` or ``credits``.
        limit, cursor
            The page.

        Returns
        -------
        Page of Account
        """
        query = given(search=search or None, banned=banned, sort=sort, limit=limit, cursor=cursor)
        return Call("GET", "/admin/accounts", listed(Account), Credential.ADMIN, query=query)

    @endpoint
    def admin_transactions(
        self, hub_username: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Transaction]]:
        """A page of any account's ledger, newest first."""
        where = f"/admin/accounts/{segment(hub_username)}/transactions"
        return Call(
            "GET", where, listed(Transaction), Credential.ADMIN, query=given(limit=limit, cursor=cursor)
        )

    @endpoint
    def health(self) -> Call[Health]:
        """Whether the server runs."""
        return Call("GET", "/healthz", single(Health), Credential.NONE)

    @endpoint
    def openapi(self) -> Call[dict[str, Any]]:
        """The server's OpenAPI document."""
        return Call("GET", "/openapi.json", single(dict[str, Any]), Credential.NONE)

    @endpoint
    def ready(self) -> Call[Readiness]:
        """Whether the server can do its work, and what is missing."""
        return Call("GET", "/readyz", readiness, Credential.NONE)

    @endpoint
    def admin_requests(
        self,
        *,
        state: str | None = None,
        user: str | None = None,
        channel: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page[SimulationRequest]]:
        """List the simulation requests of all accounts, newest first.

        Parameters
        ----------
        state, user, channel : str, optional
            Only those in a state, of an account, of a channel.
        limit, cursor
            The page.

        Returns
        -------
        Page of SimulationRequest
        """
        query = given(state=state, user=user, channel=channel, limit=limit, cursor=cursor)
        return Call("GET", "/admin/requests", listed(SimulationRequest), Credential.ADMIN, query=query)

    @endpoint
    def admin_request(self, request_id: str) -> Call[OperatedRequest]:
        """A simulation request of any account, with its job at the runner and what is done next for it."""
        where = f"/admin/requests/{segment(request_id)}"
        return Call("GET", where, single(OperatedRequest), Credential.ADMIN)

    @endpoint
    def admin_output(self, request_id: str) -> Call[Page[OutputFile]]:
        """The files of a request's output that the server keeps: none before its job has completed."""
        where = f"/admin/requests/{segment(request_id)}/output"
        return Call("GET", where, listed(OutputFile), Credential.ADMIN)

    @endpoint
    def admin_cancel(self, request_id: str, *, idempotency_key: str | None = None) -> Call[SimulationRequest]:
        """Cancel a simulation request of any account."""
        where, headers = f"/admin/requests/{segment(request_id)}/cancel", keyed(idempotency_key)
        return Call("POST", where, single(SimulationRequest), Credential.ADMIN, headers=headers)

    @endpoint
    def admin_evaluations(
        self,
        *,
        state: str | None = None,
        user: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page[Evaluation]]:
        """List the submitted models of all accounts that the server runs or ran, newest first.

        Parameters
        ----------
        state, user : str, optional
            Only those in a state, of an account.
        limit, cursor
            The page.

        Returns
        -------
        Page of Evaluation
        """
        query = given(state=state, user=user, limit=limit, cursor=cursor)
        return Call("GET", "/admin/evaluations", listed(Evaluation), Credential.ADMIN, query=query)

    @endpoint
    def admin_cancel_evaluation(
        self, evaluation_id: str, *, idempotency_key: str | None = None
    ) -> Call[Evaluation]:
        """Cancel the evaluation of a model of any account."""
        where = f"/admin/evaluations/{segment(evaluation_id)}/cancel"
        return Call("POST", where, single(Evaluation), Credential.ADMIN, headers=keyed(idempotency_key))

    @endpoint
    def admin_rerun_evaluation(
        self, evaluation_id: str, *, idempotency_key: str | None = None
    ) -> Call[Evaluation]:
        """Run a model again whose evaluation failed or was cancelled."""
        where = f"/admin/evaluations/{segment(evaluation_id)}/rerun"
        return Call("POST", where, single(Evaluation), Credential.ADMIN, headers=keyed(idempotency_key))

    @endpoint
    def admin_refunds(
        self,
        begin: datetime,
        end: datetime,
        *,
        apply: bool = False,
        digest: str | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Refunds]:
        """Preview or make refunds for requests that failed in a period.

        Parameters
        ----------
        begin, end : datetime.datetime
            The period, the end exclusive.
        apply : bool
            Refund what the preview showed; otherwise nothing is changed.
        digest : str, optional
            That of the preview, with ``apply``.
        note : str, optional
            For the audit log.

        Returns
        -------
        Refunds
            What is still charged.

        Raises
        ------
        Conflict
            If the amounts are no longer those of the preview.
        """
        period = {"from": begin.isoformat(), "to": end.isoformat()}
        body = period | given(apply=apply, digest=digest, note=note)
        headers = keyed(idempotency_key) if apply else {}
        return Call("POST", "/admin/refunds", single(Refunds), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_tasks(self) -> Call[Page[TaskStatus]]:
        """The tasks that are installed or listed, and why one accepts no submissions."""
        return Call("GET", "/admin/tasks", listed(TaskStatus), Credential.ADMIN)

    @endpoint
    def admin_submissions(
        self,
        *,
        task: str | None = None,
        user: str | None = None,
        unverified: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page[Submission]]:
        """List all submissions, newest first.

        Parameters
        ----------
        task, user : str, optional
            Only those to a task or challenge, of an account.
        unverified : bool
            Only self-reported ones that are not verified.
        limit, cursor
            The page.

        Returns
        -------
        Page of Submission
        """
        query = given(task=task, user=user, unverified=unverified or None, limit=limit, cursor=cursor)
        return Call("GET", "/admin/submissions", listed(Submission), Credential.ADMIN, query=query)

    @endpoint
    def admin_verify(self, submission_id: str, *, idempotency_key: str | None = None) -> Call[Submission]:
        """Accept the self-reported scores of a submission: from then on they earn credits."""
        where = f"/admin/submissions/{segment(submission_id)}/verify"
        return Call("POST", where, single(Submission), Credential.ADMIN, headers=keyed(idempotency_key))

    @endpoint
    def admin_usage(self, *, limit: int | None = None) -> Call[Usage]:
        """This month, and the accounts that used most of it."""
        return Call("GET", "/admin/usage", single(Usage), Credential.ADMIN, query=given(limit=limit))

    @endpoint
    def admin_channels(self, *, month: str | None = None) -> Call[Page[ChannelUsage]]:
        """What was ordered of each channel in a month (``YYYY-MM``), this one by default."""
        query = given(month=month)
        return Call("GET", "/admin/analytics/channels", listed(ChannelUsage), Credential.ADMIN, query=query)

    @endpoint
    def admin_daily(self, *, days: int | None = None) -> Call[Page[DayUsage]]:
        """What was ordered on each of the last days, oldest first."""
        query = given(days=days)
        return Call("GET", "/admin/analytics/daily", listed(DayUsage), Credential.ADMIN, query=query)

    @endpoint
    def admin_failures(self, *, month: str | None = None) -> Call[Failures]:
        """How the requests ended that ended in a month (``YYYY-MM``), this one by default."""
        query = given(month=month)
        return Call("GET", "/admin/analytics/failures", single(Failures), Credential.ADMIN, query=query)


def _overview(answer: Answer) -> Overview:
    try:
        return single(Overview)(answer)
    except NotFound:
        if answer.media_type != PROBLEM:
            raise
        # The console asks this first, and only an old server does not know it.
        raise UpstreamError(
            f"{answer.backend} runs a collidium that is older than this program ({__version__}) and does not "
            "report all that it shows: update the server"
        ) from None
