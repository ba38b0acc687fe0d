"""Operator actions, each recorded in the audit log in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from tortoise.backends.sqlite.client import SqliteClient
from tortoise.timezone import now

from collidium import accounts
from collidium.contracts.identity import SSO_SUFFIX
from collidium.database import Statement, connection, transactional
from collidium.errors import Conflict
from collidium.operations import models
from collidium.operations.models import GlobalConfig
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


async def recorded(action: str, target: str) -> AuditEntry | None:
    """The first time that an action was done to a target."""
    entry = await models.AuditEntry.filter(action=action, target=target).order_by("id").first()
    return None if entry is None else AuditEntry.of(entry)


async def forget(name: str, becomes: str) -> None:
    """Give what was done to an account its neutral name, without notes; and what it did by single sign-on.

    An operator with the name of an account of a hub may be another person.
    """
    if name.endswith(SSO_SUFFIX):
        await models.AuditEntry.filter(actor=name).update(actor=becomes)
    for entry in await models.AuditEntry.filter(target__iexact=name):
        entry.target = becomes
        entry.details.pop("note", None)
        await entry.save(update_fields=["target", "details"])


async def audit_log(*, limit: int, before: int | None = None) -> list[AuditEntry]:
    """Up to ``limit`` actions, newest first, those with an id below ``before``."""
    query = models.AuditEntry.all()
    if before is not None:
        query = query.filter(id__lt=before)
    return [AuditEntry.of(entry) for entry in await query.order_by("-id").limit(limit)]


_ROW = "platform"
#: Any number, the same in every process: the advisory lock of the kill switch on PostgreSQL.
FREEZE_LOCK = 7266022


@dataclass(frozen=True, slots=True)
class Freeze:
    """The kill switch as it stands; since when, by whom and what for are known while it is on."""

    frozen: bool
    since: datetime | None
    by: str | None
    note: str | None


async def is_frozen() -> bool:
    """Whether submissions are frozen, without a lock."""
    return (await GlobalConfig.get(name=_ROW)).submissions_frozen


#: Whether submissions are frozen, as ``submissions_frozen``. Once SHARE_FREEZE was called, in an earlier
#: statement of the transaction, that stays true until it ends: many may hold this answer at once, and a
#: freeze waits for them, so that after it nothing is accepted that was decided before it.
READ_FREEZE: Final = Statement("SELECT submissions_frozen FROM global_config WHERE name = ?", (_ROW,))
#: A function of PostgreSQL; on SQLite a transaction is alone anyway.
SHARE_FREEZE: Final = f"pg_advisory_xact_lock_shared({FREEZE_LOCK})"


async def current_freeze() -> Freeze:
    """The kill switch with what is known of it, without a lock."""
    config = await GlobalConfig.get(name=_ROW)
    return Freeze(config.submissions_frozen, config.frozen_at, config.frozen_by, config.frozen_note)


async def note_backup() -> None:
    """Note that a whole backup was made just now."""
    await GlobalConfig.filter(name=_ROW).update(backed_up_at=now())


async def last_backup() -> datetime | None:
    """When the last whole backup was made; None before the first."""
    return (await GlobalConfig.get(name=_ROW)).backed_up_at


@transactional
async def set_frozen(frozen: bool, by: str, note: str | None) -> None:
    """Turn the kill switch.

    What is frozen already keeps since when and by whom it is, and takes a new ``note``: the audit log records
    whose it is.
    """
    await _lock()
    config = await GlobalConfig.get(name=_ROW)
    if not frozen:
        config.frozen_at = config.frozen_by = config.frozen_note = None
    elif not config.submissions_frozen:
        config.frozen_at, config.frozen_by, config.frozen_note = now(), by, note
    elif note is not None:
        config.frozen_note = note
    config.submissions_frozen = frozen
    await config.save()


async def _lock() -> None:
    """Lock the kill switch until the transaction ends; on SQLite a transaction is alone anyway.

    Not the row: those that share its lock overtake the one that waits to change it, for as long as others
    come. The queue of an advisory lock is fair.
    """
    if not isinstance(connection(), SqliteClient):
        await connection().execute_query(f"SELECT pg_advisory_xact_lock({FREEZE_LOCK})")
