"""Calls of operators, and of whoever looks after a server."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import Any

from collidium import __version__
from collidium.client.answers import PROBLEM, Answer, listed, readiness, single
from collidium.client.calls.call import Call, Credential, filtered, keyed, paging, segment
from collidium.errors import InvalidInput, NotFound, UpstreamError
from collidium.records import (
    Account,
    AuditEntry,
    Banned,
    ChannelUsage,
    Closed,
    DayUsage,
    Failures,
    Frozen,
    Granted,
    Health,
    OperatedRequest,
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


def admin_grant(
    hub_username: str, delta: Decimal, reason: str, *, idempotency_key: str | None = None
) -> Call[Granted]:
    """Give credits to an account, or take them when ``delta`` is negative."""
    if not delta.is_finite() or not isfinite(delta):
        raise InvalidInput(f"{delta} is no amount of credits")
    # As a float the number keeps its three places up to far beyond any balance.
    body = {"hub_username": hub_username, "delta": float(delta), "reason": reason}
    return Call(
        "POST", "/admin/grant", single(Granted), Credential.ADMIN, json=body, headers=keyed(idempotency_key)
    )


def admin_overview() -> Call[Overview]:
    """The platform at one look. Raises UpstreamError where the server is too old to tell."""
    return Call("GET", "/admin/overview", _overview, Credential.ADMIN)


def _overview(answer: Answer) -> Overview:
    try:
        return single(Overview)(answer)
    except NotFound:
        if answer.media_type != PROBLEM:
            raise
        # Whoever looks after a server asks this first, and only an old one does not know it.
        raise UpstreamError(
            f"{answer.backend} runs a collidium that is older than this program ({__version__}) and does not "
            "tell all that it shows: update the server"
        ) from None


def admin_ban(
    hub_username: str, banned: bool = True, *, note: str | None = None, idempotency_key: str | None = None
) -> Call[Banned]:
    """Ban an account, or end its ban; the audit log keeps ``note``."""
    body = {"hub_username": hub_username, "banned": banned} | _noted(note)
    return Call(
        "POST", "/admin/ban", single(Banned), Credential.ADMIN, json=body, headers=keyed(idempotency_key)
    )


def admin_freeze(
    frozen: bool = True, *, note: str | None = None, idempotency_key: str | None = None
) -> Call[Frozen]:
    """Refuse new simulation submissions, or take them again; ``note`` says what for."""
    query = {"frozen": "true" if frozen else "false"} | _noted(note)
    return Call(
        "POST", "/admin/freeze", single(Frozen), Credential.ADMIN, query=query, headers=keyed(idempotency_key)
    )


def admin_audit(*, limit: int | None = None, cursor: str | None = None) -> Call[Page[AuditEntry]]:
    """A page of what operators did, newest first."""
    return Call("GET", "/admin/audit", listed(AuditEntry), Credential.ADMIN, query=paging(limit, cursor))


def admin_account(hub_username: str) -> Call[Account]:
    """Any account."""
    return Call("GET", f"/admin/accounts/{segment(hub_username)}", single(Account), Credential.ADMIN)


def admin_accounts(
    *,
    search: str = "",
    banned: bool | None = None,
    sort: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Page[Account]]:
    """A page of accounts whose name contains ``search``; ``sort``: newest (default), name or credits."""
    query = filtered(limit, cursor, search=search or None, banned=_flag(banned), sort=sort)
    return Call("GET", "/admin/accounts", listed(Account), Credential.ADMIN, query=query)


def admin_transactions(
    hub_username: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[Transaction]]:
    """A page of any account's ledger, newest first."""
    where = f"/admin/accounts/{segment(hub_username)}/transactions"
    return Call("GET", where, listed(Transaction), Credential.ADMIN, query=paging(limit, cursor))


def health() -> Call[Health]:
    """Whether the server runs."""
    return Call("GET", "/healthz", single(Health), Credential.NONE)


def openapi() -> Call[dict[str, Any]]:
    """The server's OpenAPI document."""
    return Call("GET", "/openapi.json", single(dict[str, Any]), Credential.NONE)


def ready() -> Call[Readiness]:
    """Whether the server can do its work, and what is missing."""
    return Call("GET", "/readyz", readiness, Credential.NONE)


# -- simulation requests of everybody ------------------------------------------------------------------


def admin_requests(
    *,
    state: str | None = None,
    user: str | None = None,
    channel: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Page[SimulationRequest]]:
    """A page of everybody's simulation requests, newest first."""
    query = filtered(limit, cursor, state=state, user=user, channel=channel)
    return Call("GET", "/admin/requests", listed(SimulationRequest), Credential.ADMIN, query=query)


def admin_request(request_id: str) -> Call[OperatedRequest]:
    """Anybody's simulation request, with its job at the runner and what is done next for it."""
    where = f"/admin/requests/{segment(request_id)}"
    return Call("GET", where, single(OperatedRequest), Credential.ADMIN)


def admin_output(request_id: str) -> Call[Page[OutputFile]]:
    """The files of a request's output that the server keeps: none before its job has completed."""
    where = f"/admin/requests/{segment(request_id)}/output"
    return Call("GET", where, listed(OutputFile), Credential.ADMIN)


def admin_cancel(request_id: str, *, idempotency_key: str | None = None) -> Call[SimulationRequest]:
    """Have anybody's simulation request cancelled."""
    where = f"/admin/requests/{segment(request_id)}/cancel"
    return Call("POST", where, single(SimulationRequest), Credential.ADMIN, headers=keyed(idempotency_key))


def admin_refunds(
    begin: datetime,
    end: datetime,
    *,
    apply: bool = False,
    digest: str | None = None,
    note: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Refunds]:
    """What is still charged for requests that failed from ``begin`` until before ``end``.

    A preview, unless ``apply``: then it is given back, if it still is what the preview with that
    ``digest`` showed; Conflict if not.
    """
    body = {"from": begin.isoformat(), "to": end.isoformat(), "apply": apply, "digest": digest}
    headers = keyed(idempotency_key) if apply else {}
    where, kind = "/admin/refunds", single(Refunds)
    return Call("POST", where, kind, Credential.ADMIN, json=body | _noted(note), headers=headers)


# -- benchmarks ----------------------------------------------------------------------------------------


def admin_tasks() -> Call[Page[TaskStatus]]:
    """The tasks that are installed or listed, and why one takes no submissions."""
    return Call("GET", "/admin/tasks", listed(TaskStatus), Credential.ADMIN)


def admin_submissions(
    *,
    task: str | None = None,
    user: str | None = None,
    unverified: bool = False,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Page[Submission]]:
    """A page of everybody's submissions, newest first; ``unverified``: self-reported and not verified."""
    query = filtered(limit, cursor, task=task, user=user, unverified=_flag(unverified or None))
    return Call("GET", "/admin/submissions", listed(Submission), Credential.ADMIN, query=query)


def admin_verify(submission_id: str, *, idempotency_key: str | None = None) -> Call[Submission]:
    """Believe what a submission reports of itself: from then on it earns what it is worth."""
    where = f"/admin/submissions/{segment(submission_id)}/verify"
    return Call("POST", where, single(Submission), Credential.ADMIN, headers=keyed(idempotency_key))


def admin_close_phase(task: str, *, idempotency_key: str | None = None) -> Call[Closed]:
    """End a task's public phase: scores on the events that were held back count, and are paid."""
    where = f"/admin/benchmark/{segment(task)}/close"
    return Call("POST", where, single(Closed), Credential.ADMIN, headers=keyed(idempotency_key))


# -- reports -------------------------------------------------------------------------------------------


def admin_usage(*, limit: int | None = None) -> Call[Usage]:
    """This month, and the accounts that used most of it."""
    return Call("GET", "/admin/usage", single(Usage), Credential.ADMIN, query=paging(limit, None))


def admin_channels(*, month: str | None = None) -> Call[Page[ChannelUsage]]:
    """What was ordered of each channel in a month (``YYYY-MM``), this one by default."""
    query = {} if month is None else {"month": month}
    where = "/admin/analytics/channels"
    return Call("GET", where, listed(ChannelUsage), Credential.ADMIN, query=query)


def admin_daily(*, days: int | None = None) -> Call[Page[DayUsage]]:
    """What was ordered on each of the last days, oldest first."""
    query = {} if days is None else {"days": str(days)}
    return Call("GET", "/admin/analytics/daily", listed(DayUsage), Credential.ADMIN, query=query)


def admin_failures(*, month: str | None = None) -> Call[Failures]:
    """How the requests ended that ended in a month (``YYYY-MM``), this one by default."""
    query = {} if month is None else {"month": month}
    return Call("GET", "/admin/analytics/failures", single(Failures), Credential.ADMIN, query=query)


# -- inside --------------------------------------------------------------------------------------------


def _noted(note: str | None) -> dict[str, str]:
    return {} if note is None else {"note": note}


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()
