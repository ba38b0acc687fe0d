"""Tortoise's PostgreSQL backend: a transaction that cannot begin gives its connection back to the pool.

Tortoise's own keeps it for ever. A PostgreSQL that ends under load makes transactions fail in that moment;
once as many have failed as the pool has connections, every later one would wait without end.
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg
from tortoise.backends.asyncpg.client import AsyncpgDBClient, TransactionWrapper
from tortoise.backends.base.client import TransactionContext, TransactionContextPooled


class PooledTransaction(TransactionWrapper):
    """A transaction that leaves its connection when it cannot begin."""

    def __init__(self, client: PooledPostgresClient) -> None:
        super().__init__(client)
        self._client = client

    async def begin(self) -> None:
        try:
            await super().begin()
        except BaseException:  # raised again, once the connection is back
            await self._client.give_back(self._connection)
            raise


async def _keep(connection: Any) -> None:
    """Return a connection to the pool as it is: nothing here changes a session.

    asyncpg itself rolls back what was left open. The statements that it would send take a round trip more
    after each query.
    """


class PooledPostgresClient(AsyncpgDBClient):
    """PostgreSQL client that loses no connection."""

    async def create_pool(self, **options: Any) -> Any:
        return await super().create_pool(reset=_keep, **options)

    async def give_back(self, connection: Any) -> None:
        """Return a connection that was taken from the pool."""
        if self._pool is not None:
            await self._pool.release(connection)

    def occupancy(self) -> dict[str, int]:
        """How many connections of the pool are used and idle, and how many there may be."""
        if self._pool is None:
            return {}
        size, idle = self._pool.get_size(), self._pool.get_idle_size()
        return {"used": size - idle, "idle": idle, "limit": self._pool.get_max_size()}

    def _in_transaction(self) -> TransactionContext:
        return TransactionContextPooled(PooledTransaction(self), self._pool_init_lock)


#: What PostgreSQL's answer is about when it is not about the statement.
#: https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL_CLASSES: Final = (
    "08",  # the connection
    "53",  # memory, disk or connections have run out
    "57",  # an operator or the system intervened: shutdown, start, cancellation
    "58",  # the system below PostgreSQL
)
_POSTGRESQL_STATES: Final = (
    "40P01",  # rolled back to end a deadlock
    "25006",  # read-only: a standby that is not promoted yet
    "25P03",  # the session was ended because its transaction idled
    "25P04",  # the same because its transaction took too long
    "55P03",  # a lock was not given in time
)
#: After these the session is over, whatever it was about.
_ENDS_THE_SESSION: Final = frozenset({"FATAL", "PANIC"})

#: asyncpg's own errors that are about what was asked, among those about a connection's state.
_ABOUT_THE_QUERY: Final = (
    ValueError,  # arguments and options
    asyncpg.UnsupportedClientFeatureError,
    asyncpg.UnsupportedServerFeatureError,
    asyncpg.OutdatedSchemaCacheError,
)


def is_away(error: BaseException) -> bool:
    """Whether an error of asyncpg means that the database cannot do its work now."""
    if isinstance(error, asyncpg.PostgresError):
        return _is_no_answer(error)
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError)):
        return not isinstance(error, _ABOUT_THE_QUERY)
    return False


def _is_no_answer(error: asyncpg.PostgresError) -> bool:
    state = getattr(error, "sqlstate", None) or ""
    return (
        getattr(error, "severity_en", None) in _ENDS_THE_SESSION
        or state.startswith(_POSTGRESQL_CLASSES)
        or state in _POSTGRESQL_STATES
    )


client_class = PooledPostgresClient
