"""The kill switch: while it is on, no new simulation request is accepted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tortoise.backends.sqlite.client import SqliteClient
from tortoise.timezone import now

from collidium.database import connection, transactional
from collidium.operations.models import GlobalConfig

_ROW = "platform"


@dataclass(frozen=True, slots=True)
class Freeze:
    """The kill switch as it stands; since when, by whom and what for are known while it is on."""

    frozen: bool
    since: datetime | None
    by: str | None
    note: str | None


async def is_frozen() -> bool:
    """Whether submissions are frozen, for those who only want to know."""
    return (await GlobalConfig.get(name=_ROW)).submissions_frozen


@transactional
async def is_frozen_until_done() -> bool:
    """Whether submissions are frozen; in a transaction the answer stays true until that ends.

    Many may hold this answer at once. Whoever freezes waits for them, so that after the freeze nothing is
    accepted that was decided before it.
    """
    # A transaction on SQLite is alone anyway, and Tortoise knows no FOR SHARE.
    share = "" if isinstance(connection(), SqliteClient) else " FOR SHARE"
    _, rows = await connection().execute_query(
        f"SELECT submissions_frozen FROM global_config WHERE name = '{_ROW}'{share}"  # noqa: S608 -- constants
    )
    return bool(rows[0]["submissions_frozen"])


async def current_freeze() -> Freeze:
    """The kill switch with what is known of it, for those who only want to know."""
    config = await GlobalConfig.get(name=_ROW)
    return Freeze(config.submissions_frozen, config.frozen_at, config.frozen_by, config.frozen_note)


@transactional
async def set_frozen(frozen: bool, by: str, note: str | None) -> None:
    """Turn the kill switch.

    What is frozen already keeps since when and by whom it is, and takes a new ``note``, of anybody: the audit
    log tells whose it is.
    """
    config = await GlobalConfig.select_for_update().get(name=_ROW)
    if not frozen:
        config.frozen_at = config.frozen_by = config.frozen_note = None
    elif not config.submissions_frozen:
        config.frozen_at, config.frozen_by, config.frozen_note = now(), by, note
    elif note is not None:
        config.frozen_note = note
    config.submissions_frozen = frozen
    await config.save()
