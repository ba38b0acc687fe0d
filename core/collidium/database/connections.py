"""Connections to the database, SQLite or PostgreSQL with one schema, and transactions on them."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from tortoise import Tortoise
from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.backends.base.config_generator import expand_db_url
from tortoise.backends.base.executor import EXECUTOR_CACHE
from tortoise.connection import get_connection, get_connections
from tortoise.transactions import in_transaction

from collidium.database.sqlite import ImmediateSqliteClient
from collidium.errors import ConfigurationError
from collidium.files.held import use_write_ahead_log
from collidium.settings import sqlite_path

APP = "collidium"
MIGRATIONS = "collidium.database.migrations"
BUSY_TIMEOUT_MS = 20_000
#: Size to which the file of the write-ahead log is cut when the log starts anew: four times its usual one, so
#: that it is not cut. Tortoise's 16 KiB make each commit extend the file, which costs the kernel twice what
#: overwriting does.
LOG_BYTES = 16 * 1024**2
P = ParamSpec("P")
R = TypeVar("R")


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
    """Run a function in a transaction that begins here, then what waits for its commit."""
    transaction = _Transaction(get_connection("default"))
    _transaction.set(transaction)
    try:
        async with in_transaction():
            result = await function()
    finally:
        transaction.open = False
    for callback in transaction.committed:
        callback()
    return result


def transactional_at_once(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """The same for a ``function`` that awaits nothing but the database.

    On SQLite it runs in the database's thread, from BEGIN to COMMIT: the way to the thread and back, which
    takes longer than most statements, is made once, and needs no task.
    """
    elsewhere = transactional(function)

    @functools.wraps(function)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = _transaction.get()
        client = outer.outside if outer is not None else get_connection("default")
        if (outer is not None and outer.open) or not isinstance(client, ImmediateSqliteClient):
            return await elsewhere(*args, **kwargs)
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
        for callback in transaction.committed:
            loop.call_soon_threadsafe(callback)

    return await client.transaction_at_once(in_thread, committed)


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


async def settled() -> None:
    """Wait until the transactions under way have ended, however they end."""
    await asyncio.gather(*_running, return_exceptions=True)


def config(url: str) -> dict[str, Any]:
    """Tortoise's configuration for the database at ``url``; raises ConfigurationError for another kind."""
    scheme = urlsplit(url).scheme
    if path := sqlite_path(url):
        credentials = {
            "engine": "collidium.database.sqlite",
            "credentials": {
                "file_path": str(path),
                "busy_timeout": BUSY_TIMEOUT_MS,
                "journal_size_limit": LOG_BYTES,
            },
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
                    "collidium.sessions.models",
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
        if path:  # before a caller can be cancelled meanwhile: Tortoise would keep its lock for ever
            await connection().create_connection(with_db=True)
        yield
    finally:
        await settled()
        await Tortoise.close_connections()


def connection() -> BaseDBAsyncClient:
    """The connection of this task: the transaction's where there is one."""
    return get_connection("default")


def occupancy() -> dict[str, int]:
    """How many connections to PostgreSQL this process has, by state; none to SQLite."""
    found: dict[str, int] = getattr(connection(), "occupancy", dict)()
    return found


async def ping() -> None:
    """Ask the database something; raises when it does not answer."""
    await connection().execute_query("SELECT 1")
