"""The hub's metadata: one SQLite file that several server processes share.

Every transaction that writes takes the write lock first, so that none fails half-way for want of it.
"""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from collidium.files.held import use_write_ahead_log

BUSY_SECONDS: Final = 30.0

#: What each version added to the one before it. A version that was released is never changed.
VERSIONS: Final = sorted(Path(__file__).with_name("schema").glob("*.sql"))
SCHEMA_VERSION: Final = len(VERSIONS)


class Database:
    """Connections to the file at ``path``, used from threads and given back after each transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        use_write_ahead_log(path)
        with self.writing() as db:
            _lay_out(db)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among all processes; kept whole or not at all."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    def close(self) -> None:
        """Close the idle connections. Idempotent."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        db = self._take()
        try:
            db.execute(begin)
            yield db
            db.execute("COMMIT")
        except BaseException:
            # Closing rolls back; a connection that has failed is not used again.
            db.close()
            raise
        self._idle.put(db)

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        return db


def _lay_out(db: sqlite3.Connection) -> None:
    """Migrate the file to this version; a later one is refused."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise RuntimeError(
            f"the local hub's files are of version {version}; this release reads {SCHEMA_VERSION} and earlier"
        )
    for added in VERSIONS[version:]:
        for statement in added.read_text(encoding="utf-8").split(";\n"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def now() -> str:
    """The current time in the hub's format: ``2026-01-01T00:00:00.000Z``."""
    return later(0)


def later(seconds: float) -> str:
    """The time after so many seconds, in the format of :func:`now`."""
    time = datetime.now(UTC) + timedelta(seconds=seconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
