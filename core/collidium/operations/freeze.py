"""The kill switch: while it is on, no new simulation request is accepted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tortoise.backends.sqlite.client import SqliteClient
from tortoise.timezone import now

from collidium.database import connection, transactional
from collidium.operations.models import GlobalConfig

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


@transactional
async def is_frozen_until_done() -> bool:
    """Whether submissions are frozen; in a transaction the answer stays true until that ends.

    Many may hold this answer at once. A freeze waits for them, so that after the freeze nothing is
    accepted that was decided before it.
    """
    await _lock("pg_advisory_xact_lock_shared")
    return await is_frozen()


async def current_freeze() -> Freeze:
    """The kill switch with what is known of it, without a lock."""
    config = await GlobalConfig.get(name=_ROW)
    return Freeze(config.submissions_frozen, config.frozen_at, config.frozen_by, config.frozen_note)


@transactional
async def set_frozen(frozen: bool, by: str, note: str | None) -> None:
    """Turn the kill switch.

    What is frozen already keeps since when and by whom it is, and takes a new ``note``: the audit log records
    whose it is.
    """
    await _lock("pg_advisory_xact_lock")
    config = await GlobalConfig.get(name=_ROW)
    if not frozen:
        config.frozen_at = config.frozen_by = config.frozen_note = None
    elif not config.submissions_frozen:
        config.frozen_at, config.frozen_by, config.frozen_note = now(), by, note
    elif note is not None:
        config.frozen_note = note
    config.submissions_frozen = frozen
    await config.save()


async def _lock(function: str) -> None:
    """Lock the kill switch until the transaction ends; on SQLite a transaction is alone anyway.

    Not the row: those that share its lock overtake the one that waits to change it, for as long as others
    come. The queue of an advisory lock is fair.
    """
    if not isinstance(connection(), SqliteClient):
        await connection().execute_query(f"SELECT {function}({FREEZE_LOCK})")
