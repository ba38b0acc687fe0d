"""The database: connections and dialects, transactions, the schema and its migrations."""

from collidium.database.connections import (
    APP,
    config,
    connected,
    connection,
    on_commit,
    ping,
    rows_of,
    transactional,
)
from collidium.database.schema import check, migrate, opened, require_known_schema

__all__ = [
    "APP",
    "check",
    "config",
    "connected",
    "connection",
    "migrate",
    "on_commit",
    "opened",
    "ping",
    "require_known_schema",
    "rows_of",
    "transactional",
]
