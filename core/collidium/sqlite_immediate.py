"""Tortoise's SQLite backend with transactions that take the write lock when they begin.

SQLite has no row locks: a transaction that reads and then writes is refused ("database is locked") when
another process wrote in between, however long the busy timeout. With ``BEGIN IMMEDIATE`` it waits for its
turn instead, and what it reads stays true until it commits, which is what ``SELECT … FOR UPDATE`` gives on
PostgreSQL.
"""

from __future__ import annotations

import sqlite3

from tortoise.backends.base.client import TransactionContext
from tortoise.backends.sqlite.client import (
    SqliteClient,
    SqliteTransactionContext,
    SqliteTransactionWrapper,
)
from tortoise.exceptions import TransactionManagementError


class ImmediateTransaction(SqliteTransactionWrapper):
    """A transaction that holds the write lock from its first moment."""

    async def begin(self) -> None:
        try:
            await self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise TransactionManagementError(error) from error


class ImmediateContext(SqliteTransactionContext):
    """Gives the connection back when a transaction cannot begin; Tortoise's own keeps it locked for ever."""

    __slots__ = ()

    async def __aenter__(self) -> ImmediateTransaction:
        try:
            return await super().__aenter__()  # type: ignore[return-value]  # the wrapper given below
        except TransactionManagementError:
            self._trxlock.release()
            raise


class ImmediateSqliteClient(SqliteClient):
    """SQLite client whose transactions are immediate."""

    def _in_transaction(self) -> TransactionContext:
        return ImmediateContext(ImmediateTransaction(self), self._lock)


client_class = ImmediateSqliteClient
