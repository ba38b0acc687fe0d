"""The server's calls, described once: both clients send these and nothing else.

A function here says what is sent and how the answer is read; it does no I/O. How a call travels is the
transports' business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

from collidium.client.answers import Answer, listed, readiness, single
from collidium.client.records import (
    Account,
    AuditEntry,
    Banned,
    Checked,
    Frozen,
    Granted,
    Health,
    Page,
    Place,
    Readiness,
    Receipt,
    Submission,
    TaskCard,
    Transaction,
)

Result = TypeVar("Result")

PARQUET = "application/vnd.apache.parquet"


class Credential(Enum):
    """Which secret a call carries."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 -- a kind of secret, not one
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """One request to the server, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Answer], Result]
    credential: Credential = Credential.TOKEN
    query: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, object] | None = None
    #: A file to send as the body.
    upload: Path | None = None

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does no more than sending it once."""
        return self.method == "GET"


# -- the caller's account ---------------------------------------------------------------------------


def me() -> Call[Account]:
    return Call("GET", "/v1/me", single(Account))


def transactions(limit: int | None, cursor: str | None) -> Call[Page[Transaction]]:
    return Call("GET", "/v1/me/transactions", listed(Transaction), query=_paging(limit, cursor))


# -- benchmarks -------------------------------------------------------------------------------------


def tasks() -> Call[Page[TaskCard]]:
    return Call("GET", "/v1/benchmark/tasks", listed(TaskCard), Credential.NONE)


def task(name: str) -> Call[TaskCard]:
    return Call("GET", f"/v1/benchmark/{_segment(name)}", single(TaskCard), Credential.NONE)


def submit(task_name: str, path: Path, model_repo: str | None) -> Call[Receipt]:
    query = {"model_repo": model_repo} if model_repo else {}
    where = f"/v1/benchmark/{_segment(task_name)}/submit"
    return Call("POST", where, single(Receipt), query=query, upload=path)


def check(task_name: str, path: Path) -> Call[Checked]:
    where = f"/v1/benchmark/{_segment(task_name)}/check"
    return Call("POST", where, single(Checked), upload=path)


def leaderboard(task_name: str, limit: int | None, cursor: str | None) -> Call[Page[Place]]:
    where = f"/v1/leaderboard/{_segment(task_name)}"
    return Call("GET", where, listed(Place), Credential.NONE, query=_paging(limit, cursor))


def submission(submission_id: str) -> Call[Submission]:
    where = f"/v1/submissions/{_segment(submission_id)}"
    return Call("GET", where, single(Submission), Credential.NONE)


# -- operation --------------------------------------------------------------------------------------


def admin_grant(hub_username: str, delta: Decimal, reason: str) -> Call[Granted]:
    # As a float the number keeps its three places up to far beyond any balance.
    body = {"hub_username": hub_username, "delta": float(delta), "reason": reason}
    return Call("POST", "/admin/grant", single(Granted), Credential.ADMIN, json=body)


def admin_ban(hub_username: str, banned: bool) -> Call[Banned]:
    body = {"hub_username": hub_username, "banned": banned}
    return Call("POST", "/admin/ban", single(Banned), Credential.ADMIN, json=body)


def admin_freeze(frozen: bool) -> Call[Frozen]:
    query = {"frozen": "true" if frozen else "false"}
    return Call("POST", "/admin/freeze", single(Frozen), Credential.ADMIN, query=query)


def admin_audit(limit: int | None, cursor: str | None) -> Call[Page[AuditEntry]]:
    return Call("GET", "/admin/audit", listed(AuditEntry), Credential.ADMIN, query=_paging(limit, cursor))


def admin_account(hub_username: str) -> Call[Account]:
    return Call("GET", f"/admin/accounts/{_segment(hub_username)}", single(Account), Credential.ADMIN)


def health() -> Call[Health]:
    return Call("GET", "/healthz", single(Health), Credential.NONE)


def ready() -> Call[Readiness]:
    return Call("GET", "/readyz", readiness, Credential.NONE)


def _paging(limit: int | None, cursor: str | None) -> dict[str, str]:
    query = {} if limit is None else {"limit": str(limit)}
    return query if cursor is None else {**query, "cursor": cursor}


def _segment(name: str) -> str:
    """A name as one segment of a path, whatever characters it has."""
    segment = quote(name, safe="")
    # Clients and proxies resolve these two, and an empty one names another path.
    if segment in {"", ".", ".."}:
        raise ValueError(f"not a name: {name!r}")
    return segment
