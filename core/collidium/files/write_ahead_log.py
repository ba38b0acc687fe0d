"""The write-ahead log of SQLite databases: of the platform's and of the local hub's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from collidium.files.held import locked

#: How long a statement waits for another process that holds a database, before it is unavailable.
BUSY_SECONDS: Final = 4.5

#: Bytes 18 and 19 of a database are its write and read versions: 2 means a write-ahead log.
#: Source: the SQLite documentation, "Database File Format", 1.3.
_VERSIONS: Final = slice(18, 20)
_BY_LOG: Final = b"\x02\x02"


def use_write_ahead_log(path: Path) -> None:
    """Switch the database at ``path``, which may be new, to a write-ahead log. Idempotent.

    Of two processes that switch at once, one would get "database is locked", as SQLite does not wait there.
    So this locks the directory.
    """
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
