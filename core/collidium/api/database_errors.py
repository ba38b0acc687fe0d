"""What a query raises when the database has gone."""

from __future__ import annotations

from traceback import walk_tb
from typing import Final

import asyncpg
from tortoise.exceptions import DBConnectionError

#: Raised for nothing else.
DATABASE_AWAY: Final = (
    DBConnectionError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.InterfaceError,
)

_DRIVERS: Final = ("asyncpg", "aiosqlite", "tortoise")


def comes_from_database(error: BaseException) -> bool:
    """Whether a database driver let the error through: asyncpg passes on what a socket raises."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(module.partition(".")[0] in _DRIVERS for module in modules)
