"""Reads of one row by its key: what every request does, at a price that every request can pay."""

from __future__ import annotations

from typing import Generic, TypeVar

from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.models import Model

from collidium import database
from collidium.database.sqlite import ImmediateSqliteClient

M = TypeVar("M", bound=Model)


class RowByKey(Generic[M]):
    """Reads the row with a unique text in ``column``, as the database has it now.

    The statement is made once: Tortoise would build the same one for every read, which takes longer than
    the read. On SQLite, outside of transactions, no thread is asked.
    """

    def __init__(self, model: type[M], column: str) -> None:
        self._model = model
        self._column = column
        self._statements: dict[str, str] = {}

    async def get_or_none(self, key: str) -> M | None:
        """The row, or None where there is none."""
        client = database.connection()
        if isinstance(client, ImmediateSqliteClient):
            client = client.at_once
        executor = client.executor_class(self._model, client)
        rows: list[M] = await executor.execute_select(self._statement(client), [key])
        return rows[0] if rows else None

    def _statement(self, client: BaseDBAsyncClient) -> str:
        dialect = client.capabilities.dialect
        if dialect not in self._statements:
            query = self._model.filter(**{self._column: ""}).using_db(client)
            self._statements[dialect] = query.sql()
        return self._statements[dialect]
