"""Connections to the database: SQLite on a laptop, PostgreSQL as a service, with one schema."""

from __future__ import annotations

import asyncio
import functools
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, ParamSpec, TypeVar
from urllib.parse import urlsplit

from tortoise import Tortoise
from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.backends.base.config_generator import expand_db_url
from tortoise.backends.base.executor import EXECUTOR_CACHE
from tortoise.backends.sqlite.client import SqliteClient
from tortoise.connection import get_connection, get_connections
from tortoise.models import Model
from tortoise.transactions import in_transaction

from collidium import database
from collidium.database.sqlite import ImmediateSqliteClient
from collidium.errors import ConfigurationError
from collidium.files.locks import use_write_ahead_log
from collidium.settings import sqlite_path

APP = "collidium"
MIGRATIONS = "collidium.database.migrations"
BUSY_TIMEOUT_MS = 20_000


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
        yield
    finally:
        await settled()
        await Tortoise.close_connections()


def connection() -> BaseDBAsyncClient:
    """The connection of this task: the transaction's where there is one."""
    return get_connection("default")


async def ping() -> None:
    """Ask the database something; raises when it does not answer."""
    await connection().execute_query("SELECT 1")


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with a ``?`` for each value, for :func:`together`."""

    sql: str
    values: Sequence[Any] = ()


async def together(*statements: Statement) -> dict[str, Any]:
    """Run statements in one round trip, and return the first row of each, the columns of all in one mapping.

    On PostgreSQL they are one statement: none sees what another changes, and what returns nothing runs last.
    """
    client = connection()
    found: dict[str, Any] = {}
    if isinstance(client, SqliteClient):
        for statement in statements:
            _, rows = await client.execute_query(statement.sql, list(statement.values))
            found |= dict(rows[0]) if rows else {}
        return found
    if not statements:
        return {}
    values = [value for statement in statements for value in statement.values]
    _, rows = await client.execute_query(_joined(tuple(statement.sql for statement in statements)), values)
    return dict(rows[0])


@functools.cache
def _joined(queries: tuple[str, ...]) -> str:
    named = {f"s{place}": query for place, query in enumerate(queries)}
    returning = [name for name, query in named.items() if query.startswith("SELECT") or "RETURNING" in query]
    parts = ", ".join(f"{name} AS ({query})" for name, query in named.items())
    columns = ", ".join(f"{name}.*" for name in returning) or "1"
    joins = "".join(f" LEFT JOIN {name} ON true" for name in returning)
    return _numbered(f"WITH {parts} SELECT {columns} FROM (SELECT 1) AS one{joins} LIMIT 1")  # noqa: S608


def insertion(row: Model) -> Statement:
    """The statement that inserts a new row, whose key the database makes."""
    sql, names = _inserting(type(row))
    fields = row._meta.fields_map  # noqa: SLF001 -- Tortoise has no other way
    return Statement(sql, [fields[name].to_db_value(getattr(row, name), row) for name in names])


@functools.cache
def _inserting(model: type[Model]) -> tuple[str, list[str]]:
    meta = model._meta  # noqa: SLF001
    names = [name for name in meta.fields_db_projection if not meta.fields_map[name].generated]
    columns = ", ".join(meta.fields_db_projection[name] for name in names)
    values = ", ".join("?" * len(names))
    return f"INSERT INTO {meta.db_table} ({columns}) VALUES ({values})", names  # noqa: S608 -- names alone


def stored(model: type[Model], field: str, value: object) -> Any:
    """A field's value as the database keeps it."""
    return model._meta.fields_map[field].to_db_value(value, model)  # noqa: SLF001


def loaded(model: type[Model], field: str, value: object) -> Any:
    """A field's value from how the database keeps it."""
    return model._meta.fields_map[field].to_python_value(value)  # noqa: SLF001


def _numbered(query: str) -> str:
    """The query with PostgreSQL's placeholders."""
    number = count(1)
    return re.sub(r"\?", lambda _: f"${next(number)}", query)


async def rows_of(query: str, *values: object) -> Sequence[Mapping[str, Any]]:
    """The rows of a SELECT that has a ``?`` for each value, on either database."""
    client = connection()
    if not isinstance(client, SqliteClient):
        query = _numbered(query)
    _, rows = await client.execute_query(query, list(values))
    return rows


M = TypeVar("M", bound=Model)


class RowByKey(Generic[M]):
    """Reads the row with a unique ``column``, or few rows with the same, as the database has them now.

    The statement is made once: Tortoise would build the same one for every read, which takes longer than
    the read. On SQLite, outside of transactions, no thread is asked. ``order`` is that of :meth:`all`.
    """

    def __init__(self, model: type[M], column: str, order: str = "") -> None:
        self._model = model
        self._column = column
        self._order = order
        self._statements: dict[str, str] = {}

    async def get_or_none(self, key: str) -> M | None:
        """The row, or None where there is none."""
        rows = await self.all(key)
        return rows[0] if rows else None

    async def all(self, key: str | int) -> list[M]:
        """The rows, in their order."""
        client = database.connection()
        if isinstance(client, ImmediateSqliteClient):
            client = client.at_once
        executor = client.executor_class(self._model, client)
        rows: list[M] = await executor.execute_select(self._statement(client), [key])
        return rows

    def _statement(self, client: BaseDBAsyncClient) -> str:
        dialect = client.capabilities.dialect
        if dialect not in self._statements:
            query = self._model.filter(**{self._column: 0}).using_db(client)
            self._statements[dialect] = (query.order_by(self._order) if self._order else query).sql()
        return self._statements[dialect]


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
    return _in_transaction(function, at_once=False)


def transactional_at_once(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """The same for a ``function`` that awaits nothing but the database.

    On SQLite it runs in the database's thread, from BEGIN to COMMIT: the way to the thread and back, which
    takes longer than most statements, is gone once.
    """
    return _in_transaction(function, at_once=True)


def _in_transaction(function: Callable[P, Awaitable[R]], *, at_once: bool) -> Callable[P, Awaitable[R]]:
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        client = get_connection("default")
        transaction = _Transaction(client)
        _transaction.set(transaction)
        try:
            if at_once and isinstance(client, ImmediateSqliteClient):
                result = await client.transaction_at_once(lambda: function(*args, **kwargs))
            else:
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


async def settled() -> None:
    """Wait until the transactions under way have ended, however they end."""
    await asyncio.gather(*_running, return_exceptions=True)
