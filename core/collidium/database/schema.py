"""The schema: apply missing migrations, and check a database for those that this release needs.

Tables whose migration is not recorded are reported, not repaired: their triggers and rows do not follow from
names.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tortoise.backends.sqlite.client import SqliteClient
from tortoise.exceptions import BaseORMException
from tortoise.migrations.executor import MigrationExecutor
from tortoise.migrations.operations import CreateModel
from tortoise.transactions import in_transaction

from collidium.database.connections import APP, config, connected, connection, ping
from collidium.database.errors import is_away
from collidium.database.statements import rows_of
from collidium.errors import ConfigurationError
from collidium.files.held import lock

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Tortoise's table of applied migrations.
RECORDS = "tortoise_migrations"
#: The key of the advisory lock for migrations on PostgreSQL; an arbitrary number.
MIGRATION_LOCK = 7266021


async def migrate(url: str) -> None:
    """Migrate the schema to this release. Safe to repeat and to run concurrently.

    All missing migrations and their records are applied in one transaction.
    """
    async with _reachable(url), _migration_lock():
        schema = await _schema()
        if schema.unknown or schema.unrecorded:
            raise ConfigurationError("the database cannot be migrated: " + "; ".join(schema.problems))
        if schema.missing:
            # Without targets this creates the table of records only. Not inside the transaction: the executor
            # queries the table first, and PostgreSQL aborts a transaction whose query fails.
            await _executor().migrate(targets=[])
            async with in_transaction():
                guards = await _triggers()
                await _executor().migrate()
                if lost := guards - await _triggers():
                    # Altering a column in SQLite replaces the table.
                    raise ConfigurationError(f"a migration dropped triggers: {', '.join(sorted(lost))}")


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[None]:
    """Connect to the database of the settings and require the schema of this release.

    The embedded SQLite database is migrated; operators migrate others. Raises ConfigurationError.
    """
    if not settings.database_url:
        await migrate(settings.database)
    async with connected(settings.database):
        await require_known_schema()
        yield


async def check(url: str) -> list[str]:
    """Return the problems of the schema, empty if it is that of this release."""
    async with _reachable(url):
        return (await _schema()).problems


async def require_known_schema() -> None:
    """Raise ConfigurationError unless the connected database has exactly this release's schema."""
    await _require_response()  # or an unavailable database would be taken for an empty one
    if problems := (await _schema()).problems:
        raise ConfigurationError("the database cannot be used: " + "; ".join(problems))


async def require_writable() -> None:
    """Write without a change; raises if the connected database is full, read-only or a standby."""
    await connection().execute_query("UPDATE tortoise_migrations SET name = name")


@asynccontextmanager
async def _reachable(url: str) -> AsyncIterator[None]:
    async with connected(url):
        await _require_response()
        yield


async def _require_response() -> None:
    try:
        await ping()
    except Exception as error:  # of any database driver
        if not is_away(error) and not isinstance(error, BaseORMException):
            raise
        raise ConfigurationError(f"the database cannot be reached: {error}") from error


def _executor() -> MigrationExecutor:
    return MigrationExecutor(connection(), {APP: config("sqlite:///any")["apps"][APP]})


@dataclass(frozen=True, slots=True)
class _Schema:
    """Differences between the migrations of this release and those of the database."""

    missing: list[str]
    unknown: list[str]
    #: Tables that exist although the migrations that create them are missing.
    unrecorded: list[str]
    #: What to delete to start over.
    place: str

    @property
    def problems(self) -> list[str]:
        problems = []
        if self.unrecorded:
            problems.append(
                f"migrations not applied: {', '.join(self.missing)}; but tables that they create exist: "
                f"{', '.join(self.unrecorded)} (an earlier version was killed while it migrated, or another "
                f"program made them; restore a backup or, if nothing in them is needed, delete {self.place}; "
                "then run: collidium db migrate)"
            )
        elif self.missing:
            names = ", ".join(self.missing)
            problems.append(f"migrations not applied: {names} (run: collidium db migrate)")
        if self.unknown:
            names = ", ".join(self.unknown)
            problems.append(
                f"it has migrations of another version of the platform: {names} (install that one or a newer "
                "release)"
            )
        return problems


async def _schema() -> _Schema:
    # Read tables before records: then a migration applied in between is not taken for an unrecorded one.
    client = connection()
    tables = await _names(
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if isinstance(client, SqliteClient)
        else "SELECT tablename AS name FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
    )
    records = f"SELECT name FROM {RECORDS} WHERE app = '{APP}'"  # noqa: S608 -- constants
    applied = await _names(records) if RECORDS in tables else set()
    loader = _executor().loader
    loader.load_disk()
    known = {key.name: migration for key, migration in loader.disk_migrations.items()}
    missing = sorted(known.keys() - applied)
    operations = (operation for name in missing for operation in known[name].operations)
    created = {(each.options or {}).get("table", "") for each in operations if isinstance(each, CreateModel)}
    return _Schema(
        missing=missing,
        unknown=sorted(applied - known.keys()),
        unrecorded=sorted(tables & created),
        place=f"the file {client.filename}" if isinstance(client, SqliteClient) else "its tables",
    )


async def applied_at(migration: str) -> datetime | None:
    """Return when a migration was applied; None if it was not."""
    query = f"SELECT applied_at FROM {RECORDS} WHERE app = ? AND name = ?"  # noqa: S608 -- a constant
    found = [row["applied_at"] for row in await rows_of(query, APP, migration)]
    # SQLite has a text.
    times = [one if isinstance(one, datetime) else datetime.fromisoformat(str(one)) for one in found]
    return times[0] if times else None


async def _triggers() -> set[str]:
    """Return the triggers of SQLite; PostgreSQL keeps those of altered tables."""
    if not isinstance(connection(), SqliteClient):
        return set()
    return await _names("SELECT name FROM sqlite_master WHERE type = 'trigger'")


async def _names(query: str) -> set[str]:
    return {row["name"] for row in await rows_of(query)}


@asynccontextmanager
async def _migration_lock() -> AsyncIterator[None]:
    """Hold the lock for migrations, so that two processes never migrate at once."""
    client = connection()
    if isinstance(client, SqliteClient):
        # A file lock, as SQLite's own lock would time out after BUSY_SECONDS.
        file = os.open(f"{client.filename}.migration-lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            await asyncio.to_thread(lock, file, wait=True)
            yield
        finally:
            os.close(file)
    else:
        async with client.acquire_connection() as session:
            await session.execute(f"SELECT pg_advisory_lock({MIGRATION_LOCK})")
            try:
                yield
            finally:
                await session.execute(f"SELECT pg_advisory_unlock({MIGRATION_LOCK})")
