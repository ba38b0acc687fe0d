"""Operator actions, each recorded in the audit log in the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from tortoise.backends.sqlite.client import SqliteClient
from tortoise.timezone import now

from collidium import accounts
from collidium.contracts.identity import SSO_SUFFIX
from collidium.database import Statement, connection, newest, transactional
from collidium.errors import Conflict
from collidium.operations import models
from collidium.operations.models import GlobalConfig
from collidium.records import AuditEntry, Granted


@transactional
async def grant(hub_username: str, delta: Decimal, note: str, *, actor: str, http_request_id: str) -> Granted:
    """Grant or deduct credits; an account that has not signed in yet may be granted some in advance.

    Raises NotFound, InvalidInput, and Conflict for a negative balance.
    """
    account = await (
        accounts.find_or_add(hub_username) if delta.is_finite() and delta > 0 else accounts.find(hub_username)
    )
    try:
        entry = await accounts.post(
            account.id, delta, reason="admin_grant", reference=f"grant:{http_request_id}", note=note
        )
    except accounts.InsufficientCredits as error:
        raise Conflict(f"{account.hub_username}: {error.detail}") from error
    details = {"delta": str(delta), "note": note, "balance_after": f"{entry.balance_after:.3f}"}
    await record(actor, "grant", account.hub_username, details, http_request_id)
    return Granted(
        hub_username=account.hub_username,
        new_balance=entry.balance_after,
        transaction_id=entry.id,
        signed_in=account.last_seen_at is not None,
    )


@transactional
async def ban(
    hub_username: str, banned: bool, note: str | None = None, *, actor: str, http_request_id: str
) -> accounts.AccountView:
    """Ban or unban an account, effective from its next request."""
    account = await accounts.set_banned(hub_username, banned)
    action = "ban" if banned else "unban"
    await record(actor, action, account.hub_username, _noted(note), http_request_id)
    return account


@transactional
async def freeze(frozen: bool, note: str | None = None, *, actor: str, http_request_id: str) -> None:
    """Stop or resume accepting simulation requests."""
    await set_frozen(frozen, actor, note)
    action = "freeze" if frozen else "unfreeze"
    await record(actor, action, "submissions", _noted(note), http_request_id)


def _noted(note: str | None) -> dict[str, str]:
    return {} if note is None else {"note": note}


async def record(
    actor: str, action: str, target: str, details: Mapping[str, Any], http_request_id: str
) -> None:
    """Add an entry to the audit log, without empty details; call it inside the transaction of the action."""
    await models.AuditEntry.create(
        actor=actor,
        action=action,
        target=target,
        details={name: value for name, value in details.items() if value not in ("", None)},
        http_request_id=http_request_id,
    )


async def is_recorded_since(moment: datetime, actions: Collection[str], target: str) -> bool:
    """Whether one of these actions on a target is in the audit log since a moment."""
    return await models.AuditEntry.exists(at__gte=moment, action__in=actions, target=target)


async def recorded(action: str, target: str) -> AuditEntry | None:
    """Return the first entry for an action on a target."""
    entry = await models.AuditEntry.filter(action=action, target=target).order_by("id").first()
    return None if entry is None else AuditEntry.of(entry)


async def forget(name: str, becomes: str) -> None:
    """Replace the name of an erased account in the audit log, and remove notes about it.

    As an actor, only an account of single sign-on is renamed: an operator with the name of a hub account may
    be another person.
    """
    if name.endswith(SSO_SUFFIX):
        await models.AuditEntry.filter(actor=name).update(actor=becomes)
    for entry in await models.AuditEntry.filter(target__iexact=name):
        entry.target = becomes
        entry.details.pop("note", None)
        await entry.save(update_fields=["target", "details"])


async def audit_log(*, limit: int, before: int | None = None) -> list[AuditEntry]:
    """Return up to ``limit`` entries with an id below ``before``, newest first."""
    return [AuditEntry.of(entry) for entry in await newest(models.AuditEntry.all(), limit, before)]


_ROW = "platform"
#: Key of the advisory lock of the freeze on PostgreSQL; an arbitrary constant.
FREEZE_LOCK = 7266022


@dataclass(frozen=True, slots=True)
class Freeze:
    """The state of the freeze; time, operator and note are set while it is on."""

    frozen: bool
    since: datetime | None
    by: str | None
    note: str | None


async def is_frozen() -> bool:
    """Whether simulation requests are frozen; takes no lock."""
    return (await GlobalConfig.get(name=_ROW)).submissions_frozen


#: Reads ``submissions_frozen``. After SHARE_FREEZE in an earlier statement of the transaction, the value
#: cannot change until the transaction ends: a freeze waits for all holders of the shared lock, so that no
#: request is accepted after it.
READ_FREEZE: Final = Statement("SELECT submissions_frozen FROM global_config WHERE name = ?", (_ROW,))
#: A PostgreSQL function; on SQLite, transactions are serial.
SHARE_FREEZE: Final = f"pg_advisory_xact_lock_shared({FREEZE_LOCK})"


async def current_freeze() -> Freeze:
    """Return the state of the freeze; takes no lock."""
    config = await GlobalConfig.get(name=_ROW)
    return Freeze(config.submissions_frozen, config.frozen_at, config.frozen_by, config.frozen_note)


async def note_backup() -> None:
    """Record that a full backup was made now."""
    await GlobalConfig.filter(name=_ROW).update(backed_up_at=now())


async def last_backup() -> datetime | None:
    """Return the time of the last full backup, or None."""
    return (await GlobalConfig.get(name=_ROW)).backed_up_at


@transactional
async def set_frozen(frozen: bool, by: str, note: str | None) -> None:
    """Set the freeze.

    If it is already on, its time and operator stay, and only a new ``note`` replaces the old one.
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
    """Lock the freeze for the transaction; on SQLite, transactions are serial.

    An advisory lock rather than a row lock: holders of shared row locks can overtake a writer indefinitely,
    while advisory locks are granted in order.
    """
    if not isinstance(connection(), SqliteClient):
        await connection().execute_query(f"SELECT pg_advisory_xact_lock({FREEZE_LOCK})")
