"""Operators' calls about accounts, requests and reports, and calls that monitor a server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import Any

from collidium import __version__
from collidium.client.calls.call import Call, Credential, endpoint, idempotency_header, not_none, segment
from collidium.client.responses import PROBLEM, Response, listed, readiness, single
from collidium.errors import InvalidInput, NotFound, UpstreamError
from collidium.records import (
    Account,
    AuditEntry,
    Banned,
    ChannelUsage,
    DayUsage,
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
    TaskStatus,
    Transaction,
    Usage,
)


class OperatorCalls:
    """Operators' calls about accounts, requests and reports, and calls that monitor a server."""

    @endpoint
    def admin_grant(
        self, hub_username: str, delta: Decimal, reason: str, *, idempotency_key: str | None = None
    ) -> Call[Granted]:
        """Grant credits to an account, or deduct them.

        Parameters
        ----------
        hub_username : str
        delta : decimal.Decimal
            Credits, to three decimal places; negative to deduct.
        reason : str
            Note of the ledger entry.
        idempotency_key : str, optional

        Returns
        -------
        Granted

        Raises
        ------
        InvalidInput
            If ``delta`` is not a valid amount of credits.
        NotFound
            If there is no such account.
        Conflict
            If the balance would become negative.
        """
        if not delta.is_finite() or not isfinite(delta):
            raise InvalidInput(f"{delta} is not a valid amount of credits")
        # As a float the number keeps its three places up to far beyond any balance.
        body = {"hub_username": hub_username, "delta": float(delta), "reason": reason}
        headers = idempotency_header(idempotency_key)
        return Call("POST", "/admin/grant", single(Granted), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_overview(self) -> Call[Overview]:
        """Return a summary of the platform: queue, usage, failures and configuration problems.

        Raises
        ------
        UpstreamError
            If the server is too old for this call.
        """
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
        """Ban an account, or lift its ban.

        Parameters
        ----------
        hub_username : str
        banned : bool
        note : str, optional
            For the audit log.
        idempotency_key : str, optional

        Returns
        -------
        Banned

        Raises
        ------
        NotFound
            If a ban is lifted and there is no such account.
        """
        body = not_none(hub_username=hub_username, banned=banned, note=note)
        headers = idempotency_header(idempotency_key)
        return Call("POST", "/admin/ban", single(Banned), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_freeze(
        self, frozen: bool = True, *, note: str | None = None, idempotency_key: str | None = None
    ) -> Call[Frozen]:
        """Stop accepting simulation requests, or accept them again.

        Parameters
        ----------
        frozen : bool
        note : str, optional
            For the audit log.
        idempotency_key : str, optional

        Returns
        -------
        Frozen
        """
        query, headers = not_none(frozen=frozen, note=note), idempotency_header(idempotency_key)
        return Call("POST", "/admin/freeze", single(Frozen), Credential.ADMIN, query=query, headers=headers)

    @endpoint
    def admin_audit(self, *, limit: int | None = None, cursor: str | None = None) -> Call[Page[AuditEntry]]:
        """List operator actions, newest first.

        Parameters
        ----------
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of AuditEntry
        """
        query = not_none(limit=limit, cursor=cursor)
        return Call("GET", "/admin/audit", listed(AuditEntry), Credential.ADMIN, query=query)

    @endpoint
    def admin_operators(self) -> Call[Page[Operator]]:
        """List all operators that have their own token, including withdrawn ones."""
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
            Permissions: ``all``, ``accounts``, ``benchmarks``, ``reports`` or ``simulations``.
        challenge : str, optional
            Makes the operator an organiser of this challenge.

        Returns
        -------
        Operator
            The only response with its ``token``.

        Raises
        ------
        InvalidInput
            With all problems in ``errors``.
        Conflict
            If the name is in use.
        """
        body = not_none(name=name, scopes=list(scopes), challenge=challenge)
        return Call("POST", "/admin/operators", single(Operator), Credential.ADMIN, json=body)

    @endpoint
    def admin_withdraw_operator(self, name: str, *, idempotency_key: str | None = None) -> Call[Operator]:
        """Withdraw an operator; its token is rejected immediately.

        Parameters
        ----------
        name : str
        idempotency_key : str, optional

        Returns
        -------
        Operator

        Raises
        ------
        NotFound
            If there is no such operator.
        """
        where = f"/admin/operators/{segment(name)}/withdraw"
        return Call(
            "POST", where, single(Operator), Credential.ADMIN, headers=idempotency_header(idempotency_key)
        )

    @endpoint
    def admin_account(self, hub_username: str) -> Call[Account]:
        """Return an account.

        Raises
        ------
        NotFound
            If there is no such account.
        """
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
            Only accounts that are banned, or only those that are not.
        sort : str, optional
            ``newest`` (default), ``name`` or ``credits``.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Account
        """
        query = not_none(search=search or None, banned=banned, sort=sort, limit=limit, cursor=cursor)
        return Call("GET", "/admin/accounts", listed(Account), Credential.ADMIN, query=query)

    @endpoint
    def admin_transactions(
        self, hub_username: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Transaction]]:
        """List the ledger entries of an account, newest first.

        Parameters
        ----------
        hub_username : str
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Transaction

        Raises
        ------
        NotFound
            If there is no such account.
        """
        where = f"/admin/accounts/{segment(hub_username)}/transactions"
        return Call(
            "GET", where, listed(Transaction), Credential.ADMIN, query=not_none(limit=limit, cursor=cursor)
        )

    @endpoint
    def health(self) -> Call[Health]:
        """Return whether the server runs.

        Raises
        ------
        Unavailable
            If it is about to stop.
        """
        return Call("GET", "/healthz", single(Health), Credential.NONE)

    @endpoint
    def openapi(self) -> Call[dict[str, Any]]:
        """Return the server's OpenAPI document."""
        return Call("GET", "/openapi.json", single(dict[str, Any]), Credential.NONE)

    @endpoint
    def ready(self) -> Call[Readiness]:
        """Return whether the server can work, and which part is missing; it does not raise if one is."""
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
            Only requests in this state, of this account, of this channel.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of SimulationRequest

        Raises
        ------
        NotFound
            If there is no such account.
        """
        query = not_none(state=state, user=user, channel=channel, limit=limit, cursor=cursor)
        return Call("GET", "/admin/requests", listed(SimulationRequest), Credential.ADMIN, query=query)

    @endpoint
    def admin_request(self, request_id: str) -> Call[OperatedRequest]:
        """Return a simulation request of any account, with its job at the runner and its next step.

        Raises
        ------
        NotFound
            If there is no such request.
        """
        where = f"/admin/requests/{segment(request_id)}"
        return Call("GET", where, single(OperatedRequest), Credential.ADMIN)

    @endpoint
    def admin_output(self, request_id: str) -> Call[Page[OutputFile]]:
        """List the stored output files of a request; empty until its job has completed.

        Raises
        ------
        NotFound
            If there is no such request.
        """
        where = f"/admin/requests/{segment(request_id)}/output"
        return Call("GET", where, listed(OutputFile), Credential.ADMIN)

    @endpoint
    def admin_cancel(self, request_id: str, *, idempotency_key: str | None = None) -> Call[SimulationRequest]:
        """Cancel a simulation request of any account.

        Parameters
        ----------
        request_id : str
        idempotency_key : str, optional

        Returns
        -------
        SimulationRequest

        Raises
        ------
        NotFound
            If there is no such request.
        Conflict
            If it has completed or failed, or its output is being published.
        """
        where, headers = f"/admin/requests/{segment(request_id)}/cancel", idempotency_header(idempotency_key)
        return Call("POST", where, single(SimulationRequest), Credential.ADMIN, headers=headers)

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
            Make the refunds of the preview; by default nothing changes.
        digest : str, optional
            ``digest`` of the preview, required with ``apply``.
        note : str, optional
            For the audit log.
        idempotency_key : str, optional

        Returns
        -------
        Refunds

        Raises
        ------
        InvalidInput
            If the period is invalid or ``digest`` is missing.
        Conflict
            If the amounts changed since the preview.
        """
        period = {"from": begin.isoformat(), "to": end.isoformat()}
        body = period | not_none(apply=apply, digest=digest, note=note)
        headers = idempotency_header(idempotency_key) if apply else {}
        return Call("POST", "/admin/refunds", single(Refunds), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_tasks(self) -> Call[Page[TaskStatus]]:
        """List the tasks that are installed or listed, with the reason if one accepts no submissions."""
        return Call("GET", "/admin/tasks", listed(TaskStatus), Credential.ADMIN)

    @endpoint
    def admin_usage(self, *, limit: int | None = None) -> Call[Usage]:
        """Return this month's usage, and the accounts that used most.

        Parameters
        ----------
        limit : int, optional
            Maximum number of accounts; 50 by default.

        Returns
        -------
        Usage
        """
        return Call("GET", "/admin/usage", single(Usage), Credential.ADMIN, query=not_none(limit=limit))

    @endpoint
    def admin_channels(self, *, month: str | None = None) -> Call[Page[ChannelUsage]]:
        """List requests and node-hours by channel in a month.

        Parameters
        ----------
        month : str, optional
            ``YYYY-MM`` in UTC; this month by default.

        Returns
        -------
        Page of ChannelUsage

        Raises
        ------
        InvalidInput
            If ``month`` is not a month.
        """
        query = not_none(month=month)
        return Call("GET", "/admin/analytics/channels", listed(ChannelUsage), Credential.ADMIN, query=query)

    @endpoint
    def admin_daily(self, *, days: int | None = None) -> Call[Page[DayUsage]]:
        """List requests and node-hours by day, oldest first.

        Parameters
        ----------
        days : int, optional
            Number of days including today; 30 by default.

        Returns
        -------
        Page of DayUsage
        """
        query = not_none(days=days)
        return Call("GET", "/admin/analytics/daily", listed(DayUsage), Credential.ADMIN, query=query)

    @endpoint
    def admin_failures(self, *, month: str | None = None) -> Call[Failures]:
        """Return the failure rate of the requests that ended in a month.

        Parameters
        ----------
        month : str, optional
            ``YYYY-MM`` in UTC; this month by default.

        Returns
        -------
        Failures

        Raises
        ------
        InvalidInput
            If ``month`` is not a month.
        """
        query = not_none(month=month)
        return Call("GET", "/admin/analytics/failures", single(Failures), Credential.ADMIN, query=query)


def _overview(response: Response) -> Overview:
    try:
        return single(Overview)(response)
    except NotFound:
        if response.media_type != PROBLEM:
            raise
        # The console makes this call first; only an old server does not have it.
        raise UpstreamError(
            f"{response.backend} runs a collidium that is older than this program ({__version__}) and does "
            "not report all that it shows: update the server"
        ) from None
