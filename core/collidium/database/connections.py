"""Connections to the database, SQLite or PostgreSQL, and transactions."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from tortoise import Tortoise
from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.backends.base.config_generator import expand_db_url
from tortoise.backends.base.executor import EXECUTOR_CACHE
from tortoise.connection import get_connection, get_connections
from tortoise.transactions import in_transaction

from collidium.errors import ConfigurationError
from collidium.files.write_ahead_log import BUSY_SECONDS, use_write_ahead_log
from collidium.overrides.tortoise.sqlite import ImmediateSqliteClient
from collidium.settings import sqlite_path

APP = "collidium"
MIGRATIONS = "collidium.database.migrations"
#: Size to which SQLite truncates the write-ahead log after a checkpoint: four times its usual size, so that
#: it seldom does. After truncation to Tortoise's 16 KiB each commit extends the file, which takes twice as
#: long as overwriting it.
LOG_BYTES = 16 * 1024**2
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class _Transaction:
    """The transaction of a task. Tasks started inside inherit it, and may run after it has ended."""

    #: The connection on which it began.
    outside: BaseDBAsyncClient
    open: bool = True
    #: Called after the commit.
    callbacks: list[Callable[[], object]] = field(default_factory=list)


_transaction: ContextVar[_Transaction | None] = ContextVar("transaction", default=None)

#: Running transactions: connections are closed after they have ended.
_running: set[asyncio.Future[Any]] = set()


def transactional(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Run ``function`` in a transaction, or in that of the caller if there is one.

    The transaction runs in a task of its own. If the caller is cancelled, for example because its client
    disconnects, the transaction still runs to its end and releases its connection.
    """

    @functools.wraps(function)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = _transaction.get()
        if outer is not None and outer.open:
            return await function(*args, **kwargs)
        context = copy_context()
        if outer is not None:
            context.run(get_connections().set, "default", outer.outside)
        running = _run(functools.partial(function, *args, **kwargs))
        task = asyncio.get_running_loop().create_task(running, context=context)
        _running.add(task)
        task.add_done_callback(_running.discard)
        return await asyncio.shield(task)

    return wrapper


async def _run(function: Callable[[], Awaitable[R]]) -> R:
    """Run a function in a new transaction, then the callbacks for its commit."""
    transaction = _Transaction(get_connection("default"))
    _transaction.set(transaction)
    try:
        async with in_transaction():
            result = await function()
    finally:
        transaction.open = False
    for callback in transaction.callbacks:
        callback()
    return result


def transactional_at_once(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Run ``function`` as :func:`transactional` does, but faster; it must await only the database.

    On SQLite the whole transaction runs in the database's thread. Switching to the thread and back, which
    takes longer than most statements, happens once, and no task is needed.
    """
    in_task = transactional(function)

    @functools.wraps(function)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = _transaction.get()
        client = outer.outside if outer is not None else get_connection("default")
        if (outer is not None and outer.open) or not isinstance(client, ImmediateSqliteClient):
            return await in_task(*args, **kwargs)
        return await _run_in_thread(client, functools.partial(function, *args, **kwargs))

    return wrapper


async def _run_in_thread(client: ImmediateSqliteClient, function: Callable[[], Awaitable[R]]) -> R:
    transaction, loop = _Transaction(client), asyncio.get_running_loop()

    async def in_thread() -> R:
        _transaction.set(transaction)
        try:
            return await function()
        finally:
            transaction.open = False

    def committed() -> None:
        for callback in transaction.callbacks:
            loop.call_soon_threadsafe(callback)

    return await client.transaction_at_once(in_thread, committed)


def on_commit(callback: Callable[[], object]) -> None:
    """Call ``callback`` after the current transaction has committed, or at once outside of a transaction.

    It must be quick and must not raise. It is not called if the transaction rolls back or the process ends.
    """
    transaction = _transaction.get()
    if transaction is not None and transaction.open:
        transaction.callbacks.append(callback)
    else:
        callback()


async def settled() -> None:
    """Wait until all running transactions have ended."""
    await asyncio.gather(*_running, return_exceptions=True)


def config(url: str) -> dict[str, Any]:
    """Return Tortoise's configuration for a database. Raises ConfigurationError for an unknown scheme."""
    scheme = urlsplit(url).scheme
    if path := sqlite_path(url):
        credentials = {
            "engine": "collidium.overrides.tortoise.sqlite",
            "credentials": {
                "file_path": str(path),
                "busy_timeout": round(BUSY_SECONDS * 1000),
                "journal_size_limit": LOG_BYTES,
            },
        }
    elif scheme in {"postgres", "postgresql", "asyncpg"}:
        credentials = expand_db_url(url) | {"engine": "collidium.overrides.tortoise.postgres"}
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
                    "collidium.challenges.models",
                    "collidium.model_runs.models",
                    "collidium.submissions.models",
                    "collidium.accounts.idempotency",
                    "collidium.operations.models",
                    "collidium.simulations.models",
                    "collidium.outbox.models",
                    "collidium.sessions.models",
                    "collidium.truth.models",
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
    """Connect to the database for all tasks of this process while the context lasts."""
    settings = config(url)
    if path := sqlite_path(url):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await asyncio.to_thread(use_write_ahead_log, path)
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(f"the database {path} cannot be opened: {error}") from error
    # Its keys are connection names, although a process may use both kinds of databases in turn.
    EXECUTOR_CACHE.clear()
    await Tortoise.init(config=settings, _enable_global_fallback=True)
    try:
        if path:  # now, as Tortoise would never release its lock if a later caller were cancelled here
            await _open_sqlite(path)
        yield
    finally:
        await settled()
        await Tortoise.close_connections()


async def _open_sqlite(path: Path) -> None:
    try:
        await connection().create_connection(with_db=True)
    except sqlite3.Error as error:
        raise ConfigurationError(f"the database {path} cannot be opened: {error}") from error


def connection() -> BaseDBAsyncClient:
    """Return the connection of this task, which is that of its transaction, if any."""
    return get_connection("default")


def occupancy() -> dict[str, int]:
    """Return the number of connections to PostgreSQL of this process, by state; nothing for SQLite."""
    found: dict[str, int] = getattr(connection(), "occupancy", dict)()
    return found


async def ping() -> None:
    """Run a trivial query; raises if the database does not respond."""
    await connection().execute_query("SELECT 1")
