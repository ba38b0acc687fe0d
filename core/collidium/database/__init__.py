"""The database: connections to SQLite or PostgreSQL, transactions, schema and migrations."""

from collidium.database.connections import (
    APP,
    config,
    connected,
    connection,
    occupancy,
    on_commit,
    transactional,
    transactional_at_once,
)
from collidium.database.schema import (
    applied_at,
    check,
    migrate,
    opened,
    require_known_schema,
    require_writable,
)
from collidium.database.statements import (
    Statement,
    execute_many,
    in_chunks,
    insertion,
    loaded,
    newest,
    rows_of,
    stored,
    together,
    unsaved,
)
from collidium.database.value_fields import ValueField

__all__ = [
    "APP",
    "Statement",
    "ValueField",
    "applied_at",
    "check",
    "config",
    "connected",
    "connection",
    "execute_many",
    "in_chunks",
    "insertion",
    "loaded",
    "migrate",
    "newest",
    "occupancy",
    "on_commit",
    "opened",
    "require_known_schema",
    "require_writable",
    "rows_of",
    "stored",
    "together",
    "transactional",
    "transactional_at_once",
    "unsaved",
]
