"""What a query or a transaction raises when it is the database that cannot do its work now.

A database that ends shows it in many ways, depending on the moment: an error message, a connection that
breaks, a protocol that is out of step with what has just been read, a connection that is closed when the
transaction is to be rolled back.
"""

from __future__ import annotations

import sqlite3
from traceback import walk_tb
from typing import Final

import asyncpg
from tortoise.exceptions import BaseORMException, DBConnectionError

_DRIVERS: Final = ("asyncpg", "aiosqlite", "sqlite3", "tortoise")

#: What PostgreSQL's answer is about when it is not about the statement.
#: https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL_CLASSES: Final = (
    "08",  # the connection
    "53",  # memory, disk or connections have run out
    "57",  # an operator or the system intervened: shutdown, start, cancellation
    "58",  # the system below PostgreSQL
)
_POSTGRESQL_STATES: Final = (
    "40P01",  # rolled back to end a deadlock
    "25006",  # read-only: a standby that is not promoted yet
    "25P03",  # the session was ended because its transaction idled
    "25P04",  # the same because its transaction took too long
    "55P03",  # a lock was not given in time
)
#: After these the session is over, whatever it was about.
_ENDS_THE_SESSION: Final = frozenset({"FATAL", "PANIC"})

#: asyncpg's own errors that are about what was asked, among those about a connection's state.
_ABOUT_THE_QUERY: Final = (
    ValueError,  # arguments and options
    asyncpg.UnsupportedClientFeatureError,
    asyncpg.UnsupportedServerFeatureError,
    asyncpg.OutdatedSchemaCacheError,
)

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
    if isinstance(error, asyncpg.PostgresError):
        return _is_no_answer(error)
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError)):
        return not isinstance(error, _ABOUT_THE_QUERY)
    if isinstance(error, sqlite3.Error):
        # The low byte is the kind, the rest is the detail.
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF in _SQLITE_CODES
    return isinstance(error, OSError) and _comes_from_driver(error)


def _is_no_answer(error: asyncpg.PostgresError) -> bool:
    state = getattr(error, "sqlstate", None) or ""
    return (
        getattr(error, "severity_en", None) in _ENDS_THE_SESSION
        or state.startswith(_POSTGRESQL_CLASSES)
        or state in _POSTGRESQL_STATES
    )


def _comes_from_driver(error: OSError) -> bool:
    """asyncpg passes on what a socket raises: refused, reset, timed out, a name that does not resolve."""
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(module.partition(".")[0] in _DRIVERS for module in modules)
