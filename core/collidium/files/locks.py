"""Locks between processes, which end with their process, and the switch of SQLite that needs one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file or directory until its last descriptor is closed.

    Returns False where another has locked it and ``wait`` is not set.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a directory, or a file that is made when absent, within the context; see :func:`lock`."""
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags, 0o600)
    try:
        yield lock(descriptor, wait=wait)
    finally:
        os.close(descriptor)


#: Bytes 18 and 19 of a database define how it is written and read: 2 is by a write-ahead log.
#: Source: the SQLite documentation, "Database File Format", 1.3.
_VERSIONS: Final = slice(18, 20)
_BY_LOG: Final = b"\x02\x02"


def use_write_ahead_log(path: Path) -> None:
    """Switch the database at ``path``, which may be new; nothing happens to one that is switched.

    Two processes that switch at once meet "database is locked", whatever their busy timeouts: SQLite does
    not wait there. So only one at a time does it, held by a lock on the directory.
    """
    import sqlite3  # 3 ms, and most who lock need no database

    with locked(path.parent):
        if not _is_switched(path):
            with closing(sqlite3.connect(path)) as database:
                database.execute("PRAGMA journal_mode = WAL")


def _is_switched(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(_VERSIONS.stop)[_VERSIONS] == _BY_LOG
    except FileNotFoundError:
        return False
