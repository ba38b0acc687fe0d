"""Tortoise's SQLite backend with immediate transactions, and with fast transactions and reads by key.

SQLite has no row locks: a transaction that reads and then writes fails ("database is locked") if another
process wrote in between, whatever the busy timeout. With ``BEGIN IMMEDIATE`` it waits for its turn instead,
and what it reads stays current until it commits, as with ``SELECT … FOR UPDATE`` on PostgreSQL.

Tortoise runs SQLite in a thread with one connection. Reads outside of transactions have a connection and a
thread of their own here: with a write-ahead log they need not wait for a transaction that waits for another
process. Finding a row by its key takes microseconds, switching to the thread and back twenty times as long,
so such reads run on the event loop, and some transactions run in the thread entirely.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import copy_context
from datetime import datetime
from time import monotonic
from typing import Any, Final, Literal, TypeVar, cast

from aiosqlite import Connection
from tortoise.backends.base.client import ConnectionWrapper, NestedTransactionContext, TransactionContext
from tortoise.backends.sqlite.client import (
    SqliteClient,
    SqliteTransactionContext,
    SqliteTransactionWrapper,
)
from tortoise.connection import get_connections
from tortoise.exceptions import BaseORMException, DBConnectionError, TransactionManagementError

from collidium.overrides.aiosqlite import run_in_thread, sqlite_connection

T = TypeVar("T")


class HeldElsewhere(asyncio.Lock):
    """A connection's lock. What waited for it while another found the database held does not begin.

    Each would otherwise wait for the busy timeout, one after the other.
    """

    _found_at = 0.0

    async def acquire(self) -> Literal[True]:
        """Acquire it; raises DBConnectionError."""
        asked_at = monotonic()
        await super().acquire()
        if self._found_at > asked_at:
            self.release()
            raise DBConnectionError("another process holds the database")
        return True

    def note(self, error: BaseException | None) -> None:
        """Note that a statement failed because another process holds the database."""
        while isinstance(error, BaseORMException):
            error = error.args[0] if error.args and isinstance(error.args[0], BaseException) else None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL}:
            self._found_at = monotonic()


class NotingWrapper(ConnectionWrapper[Any]):
    """The connection of one statement, with :class:`HeldElsewhere`."""

    __slots__ = ()

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        cast(HeldElsewhere, self._lock).note(error)
        await super().__aexit__(kind, error, trace)


class ImmediateTransaction(SqliteTransactionWrapper):
    """A transaction that takes the write lock when it begins."""

    async def begin(self) -> None:
        try:
            await self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise TransactionManagementError(error) from error

    async def execute_script(self, query: str) -> None:
        """Run the statements one by one, as sqlite3's ``executescript`` commits first."""
        for statement in split_statements(query):
            await self.execute_query(statement)

    def run_here(self) -> None:
        """Run the statements in this thread, which is the database's."""
        self._connection = cast(Connection, ConnectionHere(sqlite_connection(self._connection)))

    def _in_transaction(self) -> TransactionContext:
        return NestedTransactionContext(ImmediateTransaction(self))


class ImmediateContext(SqliteTransactionContext):
    """Unlocks the connection if a transaction cannot begin; Tortoise's own context leaves it locked."""

    __slots__ = ()

    async def __aenter__(self) -> Any:
        await self._trxlock.acquire()
        try:
            await self.ensure_connection()
            self.token = get_connections().set(self.connection_name, self.connection)
            await self.connection.begin()
        except BaseException as error:  # raised again
            cast(HeldElsewhere, self._trxlock).note(error)
            self._trxlock.release()
            raise
        return self.connection


class NotingClient(SqliteClient):
    """A client whose statements do not wait one after the other while another process holds the database."""

    def __init__(self, file_path: str, **options: Any) -> None:
        super().__init__(file_path, **options)
        self._lock = HeldElsewhere()

    def acquire_connection(self) -> NotingWrapper:
        return NotingWrapper(self._lock, self)


class ImmediateSqliteClient(NotingClient):
    """SQLite client whose transactions are immediate, and which reads through another connection."""

    def __init__(self, file_path: str, **options: Any) -> None:
        super().__init__(file_path, **options)
        self.reader = NotingClient(file_path, **options, query_only="ON")
        self._at_once: ReadsAtOnce | None = None

    async def create_connection(self, with_db: bool) -> None:
        await super().create_connection(with_db)
        await self.reader.create_connection(with_db)

    async def execute_query(
        self, query: str, values: list[Any] | None = None
    ) -> tuple[int, Sequence[dict[str, Any]]]:
        run = self.reader.execute_query if _is_read(query) else super().execute_query
        found: tuple[int, Sequence[dict[str, Any]]] = await run(query, values)
        return found

    async def execute_query_dict(self, query: str, values: list[Any] | None = None) -> list[dict[str, Any]]:
        run = self.reader.execute_query_dict if _is_read(query) else super().execute_query_dict
        found: list[dict[str, Any]] = await run(query, values)
        return found

    @property
    def at_once(self) -> ReadsAtOnce:
        """A client that reads on the event loop, for reads of a row by its key outside of transactions."""
        if self._at_once is None:
            self._at_once = ReadsAtOnce(self)
        return self._at_once

    async def transaction_at_once(
        self, function: Callable[[], Awaitable[T]], committed: Callable[[], object]
    ) -> T:
        """Run ``function``, which must await only this database, in a transaction in the database's thread.

        ``committed`` is called there after the commit. The transaction runs to its end even if the caller is
        cancelled.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[T] = loop.create_future()
        context = copy_context()

        def run() -> T:
            return context.run(_transaction_here, self, loop, function, committed)

        # Locked until it has ended in the thread: what comes next counts the changes of this connection.
        connection = await self.acquire_connection().__aenter__()
        ended.add_done_callback(self._release)
        run_in_thread(cast(Connection, connection), run, ended)
        return await asyncio.shield(ended)

    def _release(self, ended: asyncio.Future[Any]) -> None:
        cast(HeldElsewhere, self._lock).note(ended.exception())
        self._lock.release()

    async def close(self) -> None:
        # Before the connection that writes: the last to close removes the write-ahead log.
        if self._at_once is not None:
            await self._at_once.close()
            self._at_once = None
        await self.reader.close()
        await super().close()

    def _in_transaction(self) -> TransactionContext:
        return ImmediateContext(ImmediateTransaction(self), self._lock)


#: What surely only reads; a statement that writes may begin with WITH, too.
_READ: Final = re.compile(r"\s*(SELECT\b|WITH\b(?!.*\b(INSERT|UPDATE|DELETE|REPLACE)\b))", re.DOTALL)


def _is_read(query: str) -> bool:
    return _READ.match(query) is not None


# Ten times as fast as Tortoise's conversion.
sqlite3.register_converter("TIMESTAMP", lambda text: datetime.fromisoformat(text.decode()))


class ReadsAtOnce(SqliteClient):
    """The same database through another connection, which runs on the event loop.

    With a write-ahead log readers do not wait for writers. If they must wait, for example for the recovery of
    the log after a power cut, the read runs in a thread.
    """

    def __init__(self, client: ImmediateSqliteClient) -> None:
        super().__init__(client.filename, connection_name=client.connection_name)
        self._client = client
        self._reader = sqlite3.connect(
            client.filename, timeout=0, isolation_level=None, detect_types=sqlite3.PARSE_DECLTYPES
        )
        self._reader.row_factory = sqlite3.Row

    async def execute_query(
        self, query: str, values: list[Any] | None = None
    ) -> tuple[int, Sequence[dict[str, Any]]]:
        try:
            rows = self._reader.execute(query, values or ()).fetchall()
        except sqlite3.OperationalError:
            return await self._client.execute_query(query, values)
        return len(rows), rows

    async def close(self) -> None:
        self._reader.close()


class ConnectionHere:
    """The methods of an aiosqlite connection that Tortoise uses, for calls in the database's thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes

    async def execute(self, query: str) -> None:
        self._connection.execute(query)

    async def execute_insert(self, query: str, values: Sequence[Any]) -> tuple[int | None]:
        return (self._connection.execute(query, values).lastrowid,)

    async def execute_fetchall(self, query: str, values: Sequence[Any] | None = None) -> list[Any]:
        return self._connection.execute(query, values or ()).fetchall()

    async def executemany(self, query: str, values: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(query, values)

    async def commit(self) -> None:
        self._connection.commit()

    async def rollback(self) -> None:
        self._connection.rollback()


def _transaction_here(
    client: ImmediateSqliteClient,
    loop: asyncio.AbstractEventLoop,
    function: Callable[[], Awaitable[T]],
    committed: Callable[[], object],
) -> T:
    asyncio.set_event_loop(loop)  # Tortoise creates completed futures
    transaction = ImmediateTransaction(client)
    transaction.run_here()

    async def run() -> T:
        get_connections().set(client.connection_name, transaction)
        await transaction.begin()
        try:
            result = await function()
            await transaction.commit()
        except BaseException:  # raised again
            await transaction.rollback()
            raise
        committed()
        return result

    coroutine = run()
    try:
        coroutine.send(None)
    except StopIteration as end:
        ended: T = end.value
        return ended
    coroutine.close()
    raise RuntimeError("a transaction in the database's thread must await only the database")


def split_statements(script: str) -> Iterator[str]:
    """Split a script into statements, but not at semicolons in triggers, strings and comments."""
    statement = ""
    *parts, rest = script.split(";")
    for part in parts:
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if (statement + rest).strip():
        yield statement + rest


client_class = ImmediateSqliteClient
