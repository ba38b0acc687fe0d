"""Transactions: everything that decides (a charge, a reward, a state) is a function in one.

It locks the rows it decides on before it reads them (``select_for_update``; on SQLite the whole database is
locked from the start).
"""

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

    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        transaction = _Transaction(get_connection("default"))
        _transaction.set(transaction)
        try:
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
