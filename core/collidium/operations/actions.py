"""Operator actions, each recorded in the audit log in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from collidium import accounts
from collidium.database import transactional
from collidium.errors import Conflict
from collidium.operations import models
from collidium.operations.freeze import set_frozen
from collidium.records import AuditEntry, Transaction


@transactional
async def grant(
    hub_username: str, delta: Decimal, note: str, *, actor: str, http_request_id: str
) -> Transaction:
    """Give or take credits. Raises NotFound, InvalidInput, and Conflict where it would go below zero."""
    account = await accounts.find(hub_username)
    try:
        entry = await accounts.post(
            account.id, delta, reason="admin_grant", reference=f"grant:{http_request_id}", note=note
        )
    except accounts.InsufficientCredits as error:
        raise Conflict(f"{account.hub_username}: {error.detail}") from error
    details = {"delta": str(delta), "note": note, "balance_after": f"{entry.balance_after:.3f}"}
    await record(actor, "grant", account.hub_username, details, http_request_id)
    return entry


@transactional
async def ban(
    hub_username: str, banned: bool, note: str | None = None, *, actor: str, http_request_id: str
) -> accounts.AccountView:
    """Ban or unban an account; it takes effect on the account's next request."""
    account = await accounts.set_banned(hub_username, banned)
    action = "ban" if banned else "unban"
    await record(actor, action, account.hub_username, _noted(note), http_request_id)
    return account


@transactional
async def freeze(frozen: bool, note: str | None = None, *, actor: str, http_request_id: str) -> None:
    """Turn the kill switch on or off."""
    await set_frozen(frozen, actor, note)
    action = "freeze" if frozen else "unfreeze"
    await record(actor, action, "submissions", _noted(note), http_request_id)


def _noted(note: str | None) -> dict[str, str]:
    return {} if note is None else {"note": note}


async def record(
    actor: str, action: str, target: str, details: Mapping[str, Any], http_request_id: str
) -> None:
    """Record an action; call it inside its transaction."""
    await models.AuditEntry.create(
        actor=actor, action=action, target=target, details=dict(details), http_request_id=http_request_id
    )


async def audit_log(*, limit: int, before: int | None = None) -> list[AuditEntry]:
    """Up to ``limit`` actions, newest first, those with an id below ``before``."""
    query = models.AuditEntry.all()
    if before is not None:
        query = query.filter(id__lt=before)
    return [AuditEntry.of(entry) for entry in await query.order_by("-id").limit(limit)]
