"""What a query or a transaction raises when it is the database that cannot do its work now.

A database that ends shows it in many ways, depending on the moment: an error message, a connection that
breaks, a protocol that is out of step with what has just been read, a connection that is closed when the
transaction is to be rolled back.
"""

from __future__ import annotations

import sqlite3
from traceback import walk_tb
from typing import Final

from tortoise.exceptions import BaseORMException, DBConnectionError

_DRIVERS: Final = ("asyncpg", "aiosqlite", "sqlite3", "tortoise")

#: https://www.sqlite.org/rescode.html
_SQLITE_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)


def is_away(error: BaseException) -> bool:
    """Whether the database cannot do its work now; False for what is wrong with the question, and for bugs.

    What was asked may have been done all the same: the fate of a COMMIT that was never answered is unknown.
    """
    if isinstance(error, DBConnectionError):
        return True
    if isinstance(error, BaseORMException):
        # Tortoise wraps what the driver raised.
        return any(isinstance(cause, Exception) and is_away(cause) for cause in error.args)
    if type(error).__module__.partition(".")[0] == "asyncpg":
        # Not where SQLite is used: to import asyncpg takes its time.
        from collidium.database import postgres

        return postgres.is_away(error)
    if isinstance(error, sqlite3.Error):
        # The low byte is the kind, the rest is the detail.
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF in _SQLITE_CODES
    return isinstance(error, OSError) and _comes_from_driver(error)


def _comes_from_driver(error: OSError) -> bool:
    """asyncpg passes on what a socket raises: refused, reset, timed out, a name that does not resolve."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(module.partition(".")[0] in _DRIVERS for module in modules)
