"""The kill switch: while it is on, no new simulation request is accepted."""

from __future__ import annotations

from tortoise.backends.sqlite.client import SqliteClient

from collidium.database import connection, transactional
from collidium.operations.models import GlobalConfig

_ROW = "platform"


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


@transactional
async def set_frozen(frozen: bool) -> None:
    """Turn the kill switch."""
    config = await GlobalConfig.select_for_update().get(name=_ROW)
    config.submissions_frozen = frozen
    await config.save()
