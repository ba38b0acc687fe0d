"""Recognises errors of a database that is unavailable, as opposed to errors in queries.

A database that stops causes different errors, depending on the moment: an error message, a broken connection,
a protocol error, a closed connection when the transaction is rolled back.
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
    """Whether an error means that the database is unavailable; False for errors in queries and for bugs.

    The statement may have been executed nevertheless: the outcome of a COMMIT without a response is unknown.
    """
    if isinstance(error, DBConnectionError):
        return True
    if isinstance(error, BaseORMException):
        # Tortoise wraps what the driver raised.
        return any(isinstance(cause, Exception) and is_away(cause) for cause in error.args)
    if type(error).__module__.partition(".")[0] == "asyncpg":
        # Not imported for SQLite, as importing asyncpg is slow.
        from collidium.database import postgres

        return postgres.is_away(error)
    if isinstance(error, sqlite3.Error):
        # The low byte is the primary code.
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF in _SQLITE_CODES
    return isinstance(error, OSError) and _comes_from_driver(error)


def _comes_from_driver(error: OSError) -> bool:
    """Whether a driver raised the error: asyncpg passes on errors of sockets and of name resolution."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(module.partition(".")[0] in _DRIVERS for module in modules)
