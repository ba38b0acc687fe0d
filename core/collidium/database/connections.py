"""The database: SQLite on a laptop, PostgreSQL as a service; one schema, one rule for transactions.

Everything that decides (a charge, a reward, a state) is a function decorated with :func:`transactional`
that locks the rows it decides on before it reads them (``select_for_update``; on SQLite the whole database
is locked from the start).
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from tortoise import Tortoise
from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.backends.base.config_generator import expand_db_url
from tortoise.backends.base.executor import EXECUTOR_CACHE
from tortoise.backends.sqlite.client import SqliteClient
from tortoise.connection import get_connection, get_connections
from tortoise.exceptions import BaseORMException
from tortoise.migrations.executor import MigrationExecutor
from tortoise.migrations.operations import CreateModel
from tortoise.transactions import in_transaction

from collidium.database.errors import is_away
from collidium.errors import ConfigurationError
from collidium.files.locks import lock
from collidium.files.write_ahead_log import use_write_ahead_log
from collidium.settings import sqlite_path

P = ParamSpec("P")
R = TypeVar("R")

APP = "collidium"
MIGRATIONS = "collidium.database.migrations"
#: Tortoise's table of the migrations that were applied.
RECORDS = "tortoise_migrations"
BUSY_TIMEOUT_MS = 20_000
#: Any number, the same in every process: the advisory lock that a migration holds on PostgreSQL.
MIGRATION_LOCK = 7266021


def config(url: str) -> dict[str, Any]:
    """Tortoise's configuration for the database at ``url``; raises ConfigurationError for another kind."""
    scheme = urlsplit(url).scheme
    if path := sqlite_path(url):
        credentials = {
            "engine": "collidium.database.sqlite",
            "credentials": {"file_path": str(path), "busy_timeout": BUSY_TIMEOUT_MS},
        }
    elif scheme in {"postgres", "postgresql", "asyncpg"}:
        credentials = expand_db_url(url) | {"engine": "collidium.database.postgres"}
    else:
        raise ConfigurationError(
            f"PLATFORM_DATABASE_URL: {scheme or 'no'} scheme; use sqlite:///path or postgres://user@host/name"
        )
    return {
        "connections": {"default": credentials},
        "apps": {
            APP: {
                "models": [
                    "collidium.accounts.models",
                    "collidium.benchmarks.models",
                    "collidium.accounts.idempotency",
                    "collidium.operations.models",
                    "collidium.simulations.models",
                    "collidium.outbox.models",
                ],
                "migrations": MIGRATIONS,
                "default_connection": "default",
            }
        },
        "use_tz": True,
        "timezone": "UTC",
    }


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[None]:
    """Connect for the duration of the context; every task of this process uses the connection."""
    settings = config(url)
    if path := sqlite_path(url):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await asyncio.to_thread(use_write_ahead_log, path)
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(f"the database {path} cannot be opened: {error}") from error
    # Kept by connection name, although a process may speak to both kinds in turn.
    EXECUTOR_CACHE.clear()
    await Tortoise.init(config=settings, _enable_global_fallback=True)
    try:
        yield
    finally:
        await asyncio.gather(*_running, return_exceptions=True)
        await Tortoise.close_connections()


def connection() -> BaseDBAsyncClient:
    """The connection of this task: the transaction's where there is one."""
    return get_connection("default")


async def ping() -> None:
    """Ask the database something; raises when it does not answer."""
    await connection().execute_query("SELECT 1")


async def rows_of(query: str, *values: object) -> Sequence[Mapping[str, Any]]:
    """The rows of a SELECT that has a ``?`` for each value, on either database."""
    client = connection()
    if not isinstance(client, SqliteClient):
        number = count(1)
        query = re.sub(r"\?", lambda _: f"${next(number)}", query)
    _, rows = await client.execute_query(query, list(values))
    return rows


# -- schema ------------------------------------------------------------------------------------------


async def migrate(url: str) -> None:
    """Bring the schema up to this release. Safe to repeat, and to run from several processes at once.

    All missing migrations and their records are one transaction: when the process is killed, or one of them
    fails, the schema stays what it was.
    """
    async with _reachable(url), _migration_lock():
        schema = await _schema()
        if schema.unknown or schema.unrecorded:
            raise ConfigurationError("the database cannot be migrated: " + "; ".join(schema.problems))
        if schema.missing:
            # Without targets it makes the table of records only. Not in the transaction, which PostgreSQL
            # would abort: the executor looks for the table, and a failed look is an error.
            await _executor().migrate(targets=[])
            async with in_transaction():
                await _executor().migrate()


async def check(url: str) -> list[str]:
    """What is wrong with the schema, a line each; nothing when it is the one this release knows."""
    async with _reachable(url):
        return (await _schema()).problems


async def require_known_schema() -> None:
    """Raise ConfigurationError unless the connected database has exactly this release's schema."""
    await _require_answer()  # or its silence would be taken for an empty schema
    if problems := (await _schema()).problems:
        raise ConfigurationError("the database cannot be used: " + "; ".join(problems))


@asynccontextmanager
async def _reachable(url: str) -> AsyncIterator[None]:
    async with connected(url):
        await _require_answer()
        yield


async def _require_answer() -> None:
    try:
        await ping()
    except Exception as error:
        if not is_away(error) and not isinstance(error, BaseORMException):
            raise
        raise ConfigurationError(f"the database cannot be reached: {error}") from error


def _executor() -> MigrationExecutor:
    return MigrationExecutor(connection(), {APP: config("sqlite:///any")["apps"][APP]})


@dataclass(frozen=True, slots=True)
class _Schema:
    """The migrations that this release knows and the database lacks, and the other way round."""

    missing: list[str]
    unknown: list[str]
    #: Tables that exist, although the migrations that create them are missing.
    unrecorded: list[str]
    #: What to delete to start anew.
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
            problems.append(f"its schema is newer than this release: {names} (install a newer release)")
        return problems


async def _schema() -> _Schema:
    # Tables before records: migrations that are applied in between are not taken for unrecorded ones.
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


async def _names(query: str) -> set[str]:
    return {row["name"] for row in await rows_of(query)}


@asynccontextmanager
async def _migration_lock() -> AsyncIterator[None]:
    """Held while migrating, so that two processes never migrate at once."""
    client = connection()
    if isinstance(client, SqliteClient):
        # A file's lock is waited for as long as it takes, SQLite's own for BUSY_TIMEOUT_MS.
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


# -- transactions ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Transaction:
    """A transaction that may have ended: tasks started inside it inherit this, and may outlive it."""

    #: The connection that it was begun on.
    outside: BaseDBAsyncClient
    open: bool = True
    committed: list[Callable[[], object]] = field(default_factory=list)


_transaction: ContextVar[_Transaction | None] = ContextVar("transaction", default=None)

#: Transactions under way, so that the connection stays open until they have ended.
_running: set[asyncio.Future[Any]] = set()


def transactional(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Run ``function`` in one transaction, or in the caller's when one is under way.

    The transaction lives in a task of its own: a caller who is cancelled (a client that hangs up) neither
    tears it nor leaves a connection behind; it commits or rolls back as if the caller had waited.
    """

    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        transaction = _Transaction(connection())
        _transaction.set(transaction)
        try:
            async with in_transaction():
                result = await function(*args, **kwargs)
        finally:
            transaction.open = False
        for callback in transaction.committed:
            callback()
        return result

    @functools.wraps(function)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = _transaction.get()
        if outer is not None and outer.open:
            return await function(*args, **kwargs)
        context = copy_context()
        if outer is not None:
            context.run(get_connections().set, "default", outer.outside)
        task = asyncio.get_running_loop().create_task(run(*args, **kwargs), context=context)
        _running.add(task)
        task.add_done_callback(_running.discard)
        return await asyncio.shield(task)

    return wrapper


def on_commit(callback: Callable[[], object]) -> None:
    """Call ``callback`` once the transaction under way has committed; never when it rolls back.

    For what others in this process should hear soon. It must be quick and must not raise; outside of a
    transaction it is called at once.
    """
    transaction = _transaction.get()
    if transaction is not None and transaction.open:
        transaction.committed.append(callback)
    else:
        callback()
