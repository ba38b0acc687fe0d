"""What signing in remembers: one SQLite file that all server processes of a machine share."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from collidium.errors import Unavailable
from collidium.files.data_directory import make_private
from collidium.files.locks import use_write_ahead_log

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

SCHEMA_VERSION: Final = 1
BUSY_SECONDS: Final = 10.0

#: Times are seconds since 1970.
SCHEMA: Final = """
CREATE TABLE sessions (
    sha256 TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    token TEXT NOT NULL,
    begun_at REAL NOT NULL,
    seen_at REAL NOT NULL,
    ends_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_of_name ON sessions (name, begun_at);
-- Sign-ins that have left for the hub and are not back.
CREATE TABLE departures (
    sha256 TEXT PRIMARY KEY,
    redirect_uri TEXT NOT NULL,
    return_to TEXT NOT NULL,
    ends_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE attempts (
    minute INTEGER NOT NULL,
    kind TEXT NOT NULL,
    address TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (minute, kind, address)
) WITHOUT ROWID;
"""


class Store:
    """The file, through one connection that a thread of its own asks: never the event loop."""

    def __init__(self, path: Path) -> None:
        """Blocks: opens the file, which is made when absent, for the platform's account alone."""
        make_private(path.parent)
        path.touch(mode=0o600)
        use_write_ahead_log(path)
        self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._thread = ThreadPoolExecutor(1, "collidium-sign-in")
        _lay_out(self._db)

    async def transact(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """``work`` as one transaction, alone among all processes. Raises Unavailable."""
        return await self._beside_the_loop(lambda: _alone(self._db, work))

    async def read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """``work`` that changes nothing. Raises Unavailable."""
        return await self._beside_the_loop(lambda: work(self._db))

    async def _beside_the_loop(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            logger.error("the file of sessions: %s", error)
            raise Unavailable("nobody can be signed in right now; try again soon") from error

    def close(self) -> None:
        """Blocks until what was begun is done."""
        self._thread.shutdown()
        self._db.close()


def _alone(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], Result]) -> Result:
    db.execute("BEGIN IMMEDIATE")
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:  # raised again, with nothing half done
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return result


def _lay_out(db: sqlite3.Connection) -> None:
    # Losing the newest sessions to a power cut costs their owners one more sign-in.
    db.execute("PRAGMA synchronous = NORMAL")
    # What is deleted is gone: no token is left to be read from free pages.
    db.execute("PRAGMA secure_delete = ON")
    _alone(db, _make_tables)


def _make_tables(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == SCHEMA_VERSION:
        return
    # Of another release, if of any. Everybody signs in again; there is nothing else to lose.
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        db.execute(f"DROP TABLE {table}")
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
