"""Tortoise's PostgreSQL backend, with a fix: a transaction that cannot begin releases its connection.

Tortoise leaks that connection. When PostgreSQL stops under load, transactions fail to begin; once as many
have failed as the pool has connections, all later ones would wait forever.
"""

from __future__ import annotations

from typing import Any

from tortoise.backends.asyncpg.client import AsyncpgDBClient, TransactionWrapper
from tortoise.backends.base.client import TransactionContext, TransactionContextPooled


class PooledTransaction(TransactionWrapper):
    """A transaction that releases its connection if it cannot begin."""

    def __init__(self, client: PooledPostgresClient) -> None:
        super().__init__(client)
        self._client = client

    async def begin(self) -> None:
        try:
            await super().begin()
        except BaseException:  # raised again
            await self._client.release(self._connection)
            raise


async def _no_reset(connection: Any) -> None:
    """Do not reset a connection that returns to the pool, as no code here changes session settings.

    asyncpg's reset would take a round trip after each query. It rolls back open transactions even without.
    """


class PooledPostgresClient(AsyncpgDBClient):
    """PostgreSQL client that leaks no connection."""

    async def create_pool(self, **options: Any) -> Any:
        return await super().create_pool(reset=_no_reset, **options)

    async def release(self, connection: Any) -> None:
        """Return a connection to the pool."""
        if self._pool is not None:
            await self._pool.release(connection)

    def occupancy(self) -> dict[str, int]:
        """Return the number of used and idle connections of the pool, and its limit."""
        if self._pool is None:
            return {}
        size, idle = self._pool.get_size(), self._pool.get_idle_size()
        return {"used": size - idle, "idle": idle, "limit": self._pool.get_max_size()}

    def _in_transaction(self) -> TransactionContext:
        return TransactionContextPooled(PooledTransaction(self), self._pool_init_lock)


client_class = PooledPostgresClient
