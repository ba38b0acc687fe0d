"""Rows that every request reads, by a statement that is made once."""

from __future__ import annotations

from typing import Generic, TypeVar

from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.models import Model

from collidium.database.connections import connection
from collidium.database.sqlite import ImmediateSqliteClient

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
        client = connection()
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
