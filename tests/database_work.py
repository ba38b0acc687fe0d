"""How much a database does: a count, which depends neither on the clock nor on the machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from tortoise.backends.sqlite.client import SqliteClient

from collidium.database import connection, rows_of
from collidium.overrides.tortoise.sqlite import ImmediateSqliteClient

#: Steps of SQLite's virtual machine that are counted together; a row that is read takes some more than that.
_STEPS = 10
_READ = """
SELECT (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables)
    + (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes) AS rows
"""


@dataclass
class Work:
    """Steps on SQLite, rows and entries of indexes read on PostgreSQL."""

    amount: int = 0


@asynccontextmanager
async def work_of_database() -> AsyncIterator[Work]:
    """Count what the connected database does in this process while the context lasts."""
    client, work = connection(), Work()
    if isinstance(client, SqliteClient):

        def step() -> int:
            work.amount += _STEPS
            return 0

        used = [cast(Any, of)._connection for of in (client, cast(ImmediateSqliteClient, client).reader)]
        for sqlite in used:
            await sqlite.set_progress_handler(step, _STEPS)
        try:
            yield work
        finally:
            for sqlite in used:
                await sqlite.set_progress_handler(None, 0)
        return
    before = await _rows_read()
    yield work
    work.amount = await _rows_read() - before


async def _rows_read() -> int:
    # One after another, so on the connection whose statements are counted.
    await rows_of("SELECT pg_stat_force_next_flush()")
    await rows_of("SELECT pg_stat_clear_snapshot()")
    (row,) = await rows_of(_READ)
    return int(row["rows"])


async def analyze() -> None:
    """Let PostgreSQL learn how large its tables are, as its background process does within a minute."""
    if not isinstance(connection(), SqliteClient):
        await rows_of("ANALYZE")
