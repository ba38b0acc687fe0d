"""asyncpg's errors of an unavailable database."""

from __future__ import annotations

from typing import Final

import asyncpg

#: Error codes that do not concern the statement.
#: https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL_CLASSES: Final = (
    "08",  # connection
    "53",  # insufficient resources: memory, disk, connections
    "57",  # operator intervention: shutdown, start, cancellation
    "58",  # system error outside of PostgreSQL
)
_POSTGRESQL_STATES: Final = (
    "40P01",  # deadlock detected
    "25006",  # read-only: a standby that is not promoted yet
    "25P03",  # idle-in-transaction timeout
    "25P04",  # transaction timeout
    "55P03",  # lock timeout
)
#: Severities that end the session.
_ENDS_THE_SESSION: Final = frozenset({"FATAL", "PANIC"})

#: Errors of asyncpg itself that concern the query; others concern the state of the connection.
_ABOUT_THE_QUERY: Final = (
    ValueError,  # arguments and options
    asyncpg.UnsupportedClientFeatureError,
    asyncpg.UnsupportedServerFeatureError,
    asyncpg.OutdatedSchemaCacheError,
)


def is_away(error: BaseException) -> bool:
    """Whether an error of asyncpg means that the database is unavailable."""
    if isinstance(error, asyncpg.PostgresError):
        state = getattr(error, "sqlstate", None) or ""
        return (
            getattr(error, "severity_en", None) in _ENDS_THE_SESSION
            or state.startswith(_POSTGRESQL_CLASSES)
            or state in _POSTGRESQL_STATES
        )
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError)):
        return not isinstance(error, _ABOUT_THE_QUERY)
    return False
