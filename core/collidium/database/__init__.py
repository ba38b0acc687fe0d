"""The database: connections and dialects, transactions, the schema and its migrations."""

from collidium.database.connections import (
    APP,
    Statement,
    config,
    connected,
    connection,
    insertion,
    loaded,
    on_commit,
    ping,
    rows_of,
    stored,
    together,
    transactional,
    transactional_at_once,
)
from collidium.database.schema import check, migrate, opened, require_known_schema

__all__ = [
    "APP",
    "Statement",
    "check",
    "config",
    "connected",
    "connection",
    "insertion",
    "loaded",
    "migrate",
    "on_commit",
    "opened",
    "ping",
    "require_known_schema",
    "rows_of",
    "stored",
    "together",
    "transactional",
    "transactional_at_once",
]
