"""The database: connections and dialects, transactions, the schema and its migrations."""

from collidium.database.connections import APP, config, connected, connection, ping, rows_of
from collidium.database.schema import check, migrate, opened, require_known_schema
from collidium.database.transactions import on_commit, transactional

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
