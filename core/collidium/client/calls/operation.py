"""Calls of operators, and of whoever looks after a server."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from math import isfinite

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


def admin_grant(hub_username: str, delta: Decimal, reason: str, key: str | None) -> Call[Granted]:
    if not delta.is_finite() or not isfinite(delta):
        raise InvalidInput(f"{delta} is no amount of credits")
    # As a float the number keeps its three places up to far beyond any balance.
    body = {"hub_username": hub_username, "delta": float(delta), "reason": reason}
    return Call("POST", "/admin/grant", single(Granted), Credential.ADMIN, json=body, headers=keyed(key))


def admin_overview() -> Call[Overview]:
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


def admin_ban(hub_username: str, banned: bool, note: str | None, key: str | None) -> Call[Banned]:
    body = {"hub_username": hub_username, "banned": banned} | _noted(note)
    return Call("POST", "/admin/ban", single(Banned), Credential.ADMIN, json=body, headers=keyed(key))


def admin_freeze(frozen: bool, note: str | None, key: str | None) -> Call[Frozen]:
    query = {"frozen": "true" if frozen else "false"} | _noted(note)
    return Call("POST", "/admin/freeze", single(Frozen), Credential.ADMIN, query=query, headers=keyed(key))


def admin_audit(limit: int | None, cursor: str | None) -> Call[Page[AuditEntry]]:
    return Call("GET", "/admin/audit", listed(AuditEntry), Credential.ADMIN, query=paging(limit, cursor))


def admin_account(hub_username: str) -> Call[Account]:
    return Call("GET", f"/admin/accounts/{segment(hub_username)}", single(Account), Credential.ADMIN)


def admin_accounts(
    search: str, banned: bool | None, sort: str | None, limit: int | None, cursor: str | None
) -> Call[Page[Account]]:
    query = filtered(limit, cursor, search=search or None, banned=_flag(banned), sort=sort)
    return Call("GET", "/admin/accounts", listed(Account), Credential.ADMIN, query=query)


def admin_transactions(hub_username: str, limit: int | None, cursor: str | None) -> Call[Page[Transaction]]:
    where = f"/admin/accounts/{segment(hub_username)}/transactions"
    return Call("GET", where, listed(Transaction), Credential.ADMIN, query=paging(limit, cursor))


def health() -> Call[Health]:
    return Call("GET", "/healthz", single(Health), Credential.NONE)


def ready() -> Call[Readiness]:
    return Call("GET", "/readyz", readiness, Credential.NONE)


# -- simulation requests of everybody ------------------------------------------------------------------


def admin_requests(
    state: str | None,
    user: str | None,
    channel: str | None,
    limit: int | None,
    cursor: str | None,
) -> Call[Page[SimulationRequest]]:
    query = filtered(limit, cursor, state=state, user=user, channel=channel)
    return Call("GET", "/admin/requests", listed(SimulationRequest), Credential.ADMIN, query=query)


def admin_request(request_id: str) -> Call[OperatedRequest]:
    where = f"/admin/requests/{segment(request_id)}"
    return Call("GET", where, single(OperatedRequest), Credential.ADMIN)


def admin_output(request_id: str) -> Call[Page[OutputFile]]:
    where = f"/admin/requests/{segment(request_id)}/output"
    return Call("GET", where, listed(OutputFile), Credential.ADMIN)


def admin_cancel(request_id: str, key: str | None) -> Call[SimulationRequest]:
    where = f"/admin/requests/{segment(request_id)}/cancel"
    return Call("POST", where, single(SimulationRequest), Credential.ADMIN, headers=keyed(key))


def admin_refunds(
    begin: datetime, end: datetime, apply: bool, digest: str | None, note: str | None, key: str | None
) -> Call[Refunds]:
    body = {"from": begin.isoformat(), "to": end.isoformat(), "apply": apply, "digest": digest}
    headers = keyed(key) if apply else {}
    where, kind = "/admin/refunds", single(Refunds)
    return Call("POST", where, kind, Credential.ADMIN, json=body | _noted(note), headers=headers)


# -- benchmarks ----------------------------------------------------------------------------------------


def admin_tasks() -> Call[Page[TaskStatus]]:
    return Call("GET", "/admin/tasks", listed(TaskStatus), Credential.ADMIN)


def admin_submissions(
    task: str | None, user: str | None, unverified: bool, limit: int | None, cursor: str | None
) -> Call[Page[Submission]]:
    query = filtered(limit, cursor, task=task, user=user, unverified=_flag(unverified or None))
    return Call("GET", "/admin/submissions", listed(Submission), Credential.ADMIN, query=query)


def admin_verify(submission_id: str, key: str | None) -> Call[Submission]:
    where = f"/admin/submissions/{segment(submission_id)}/verify"
    return Call("POST", where, single(Submission), Credential.ADMIN, headers=keyed(key))


def admin_close_phase(task_name: str, key: str | None) -> Call[Closed]:
    where = f"/admin/benchmark/{segment(task_name)}/close"
    return Call("POST", where, single(Closed), Credential.ADMIN, headers=keyed(key))


# -- reports -------------------------------------------------------------------------------------------


def admin_usage(limit: int | None) -> Call[Usage]:
    return Call("GET", "/admin/usage", single(Usage), Credential.ADMIN, query=paging(limit, None))


def admin_channels(month: str | None) -> Call[Page[ChannelUsage]]:
    query = {} if month is None else {"month": month}
    where = "/admin/analytics/channels"
    return Call("GET", where, listed(ChannelUsage), Credential.ADMIN, query=query)


def admin_daily(days: int | None) -> Call[Page[DayUsage]]:
    query = {} if days is None else {"days": str(days)}
    return Call("GET", "/admin/analytics/daily", listed(DayUsage), Credential.ADMIN, query=query)


def admin_failures(month: str | None) -> Call[Failures]:
    query = {} if month is None else {"month": month}
    return Call("GET", "/admin/analytics/failures", single(Failures), Credential.ADMIN, query=query)


# -- inside --------------------------------------------------------------------------------------------


def _noted(note: str | None) -> dict[str, str]:
    return {} if note is None else {"note": note}


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()
