"""Transactions: each in a task of its own, with callbacks for when it has committed."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from tortoise.backends.base.client import BaseDBAsyncClient
from tortoise.connection import get_connection, get_connections
from tortoise.transactions import in_transaction

from collidium.database.sqlite import ImmediateSqliteClient

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
