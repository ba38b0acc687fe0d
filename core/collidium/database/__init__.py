"""The database: connection and dialects, transactions, the schema and its migrations."""

from collidium.database.connections import (
    APP,
    check,
    config,
    connected,
    connection,
    migrate,
    on_commit,
    ping,
    require_known_schema,
    rows_of,
    transactional,
)

__all__ = [
    "APP",
    "check",
    "config",
    "connected",
    "connection",
    "migrate",
    "on_commit",
    "ping",
    "require_known_schema",
    "rows_of",
    "transactional",
]
