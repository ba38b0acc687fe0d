"""aiosqlite: run a function in a connection's thread, and the connection of sqlite3 in it.

A transaction that runs in the thread as a whole switches threads once instead of at every statement
(``collidium.database.transactional_at_once``). aiosqlite queues functions for its thread, but has no public
method for it; a caller asked for one in https://github.com/omnilib/aiosqlite/issues/19. It can go when there
is one.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Final, TypeVar

from aiosqlite import Connection

TESTED: Final = {"aiosqlite": ("0.22.1",)}

T = TypeVar("T")


def run_in_thread(connection: Connection, function: Callable[[], T], ended: asyncio.Future[T]) -> None:
    """Run a function in the connection's thread; its result or exception ends the future."""
    connection._tx.put_nowait((ended, function))


def sqlite_connection(connection: Connection) -> sqlite3.Connection:
    """Return the connection of sqlite3, which only the connection's thread may use."""
    return connection._conn
