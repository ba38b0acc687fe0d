"""Tortoise's PostgreSQL backend: a transaction that cannot begin gives its connection back to the pool.

Tortoise's own keeps it for ever. A PostgreSQL that ends under load makes transactions fail in that moment;
once as many have failed as the pool has connections, every later one would wait without end.
"""

from __future__ import annotations

from typing import Any

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

    def _in_transaction(self) -> TransactionContext:
        return TransactionContextPooled(PooledTransaction(self), self._pool_init_lock)


client_class = PooledPostgresClient
