"""Migrations for the tests that kill them: tables, columns, an index, triggers, and rows that are copied.

They are applied in place of the platform's, to a database of their own.
"""

from __future__ import annotations

import asyncio

from tortoise.migrations.executor import MigrationExecutor, MigrationTarget

from collidium import database
from collidium.database import connections

NAME = __name__


def migrate(url: str) -> None:
    """Apply all of them, as ``collidium db migrate`` does."""
    connections.MIGRATIONS = NAME
    asyncio.run(database.migrate(url))


def migrate_to_first(url: str, rows: int) -> None:
    """Apply the first one and fill its table."""
    connections.MIGRATIONS = NAME

    async def prepare() -> None:
        async with database.connected(url):
            executor = MigrationExecutor(database.connection(), database.config(url)["apps"])
            await executor.migrate([MigrationTarget(database.APP, "0001_hits")])
            await database.connection().execute_query(
                "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers "
                f"WHERE n < {rows}) INSERT INTO hits (id, layer) SELECT n, n % 10 FROM numbers"
            )

    asyncio.run(prepare())
