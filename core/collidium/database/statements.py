"""SQL statements for both databases: several in one round trip, insertions, fast reads by key."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Final, Generic, TypeVar

from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.backends.sqlite.client import SqliteClient
from tortoise.models import Model
from tortoise.queryset import QuerySet

from collidium.database.connections import connection
from collidium.overrides.tortoise import meta
from collidium.overrides.tortoise.sqlite import ImmediateSqliteClient

M = TypeVar("M", bound=Model)
T = TypeVar("T")

#: Maximum length of a list of values in a statement; PostgreSQL accepts 32,767 arguments.
CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with a ``?`` for each value; for :func:`together`."""

    sql: str
    values: Sequence[Any] = ()


async def together(*statements: Statement) -> dict[str, Any]:
    """Run statements in one round trip; return the columns of the first row of each in one mapping.

    On PostgreSQL they are combined into one statement: none sees the changes of another, and those that
    return nothing run last.
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
    named = {f"s{number}": query for number, query in enumerate(queries)}
    returning = [name for name, query in named.items() if query.startswith("SELECT") or "RETURNING" in query]
    parts = ", ".join(f"{name} AS ({query})" for name, query in named.items())
    columns = ", ".join(f"{name}.*" for name in returning) or "1"
    joins = "".join(f" LEFT JOIN {name} ON true" for name in returning)
    return _numbered(f"WITH {parts} SELECT {columns} FROM (SELECT 1) AS one{joins} LIMIT 1")  # noqa: S608 -- our own statements


def unsaved(model: type[M], **values: Any) -> M:
    """Return a new row, faster than the constructor, whose checks are repeated when the row is written.

    Not for models with callable or mutable defaults, as all rows share them.
    """
    return model.construct(**(_defaults(model) | values))


@functools.cache
def _defaults(model: type[Model]) -> dict[str, Any]:
    row = model.construct()
    return {name: getattr(row, name) for name in meta(row).fields_db_projection}


def insertion(row: Model) -> Statement:
    """Return the statement that inserts a new row, whose primary key the database generates."""
    sql, names = _inserting(type(row))
    fields = meta(row).fields_map
    return Statement(sql, [fields[name].to_db_value(getattr(row, name), row) for name in names])


@functools.cache
def _inserting(model: type[Model]) -> tuple[str, list[str]]:
    described = meta(model)
    fields = described.fields_db_projection
    names = [name for name in fields if not described.fields_map[name].generated]
    columns = ", ".join(fields[name] for name in names)
    values = ", ".join("?" * len(names))
    return f"INSERT INTO {described.db_table} ({columns}) VALUES ({values})", names  # noqa: S608 -- names alone


def columns(model: type[Model]) -> set[str]:
    """Return the names of a model's columns."""
    return meta(model).db_fields


def stored(model: type[Model], field: str, value: object) -> Any:
    """Return a field's value as the database stores it."""
    return meta(model).fields_map[field].to_db_value(value, model)


def loaded(model: type[Model], field: str, value: object) -> Any:
    """Return a field's value from what the database stores."""
    return meta(model).fields_map[field].to_python_value(value)


def newest(rows: QuerySet[M], limit: int, before: int | None) -> QuerySet[M]:
    """Select up to ``limit`` rows with ids below ``before``, newest first."""
    if before is not None:
        rows = rows.filter(id__lt=before)
    return rows.order_by("-id").limit(limit)


def in_chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Yield the values in lists that are short enough for a statement with an argument for each."""
    remaining = iter(values)
    while chunk := list(islice(remaining, size)):
        yield chunk


async def execute_many(query: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement with a ``?`` for each value, once for each row of values."""
    client = connection()
    if not isinstance(client, SqliteClient):
        query = _numbered(query)
    if rows:
        await client.execute_many(query, [list(row) for row in rows])


async def rows_of(query: str, *values: object) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a SELECT with a ``?`` for each value."""
    client = connection()
    if not isinstance(client, SqliteClient):
        query = _numbered(query)
    _, rows = await client.execute_query(query, list(values))
    return rows


def _numbered(query: str) -> str:
    """Replace ``?`` by PostgreSQL's placeholders."""
    number = count(1)
    return re.sub(r"\?", lambda _: f"${next(number)}", query)


class RowByKey(Generic[M]):
    """Fast reads of the rows with a value of ``column``, sorted by ``order``.

    The SQL is built once, as building it takes longer than the read. On SQLite, outside of transactions, the
    read runs on the event loop and not in a thread.
    """

    def __init__(self, model: type[M], column: str, order: str = "") -> None:
        self._model = model
        self._column = column
        self._order = order
        self._statements: dict[str, str] = {}

    async def get_or_none(self, key: str) -> M | None:
        """Return the first row, None if there is none."""
        rows = await self.all(key)
        return rows[0] if rows else None

    async def all(self, key: str | int) -> list[M]:
        """Return all rows."""
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
