"""Switching to the write-ahead log, by many at the same moment."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

from collidium.files.held import use_write_ahead_log


def test_those_who_open_a_new_database_at_once_do_not_meet(tmp_path: Path) -> None:
    together = Barrier(8)

    def open_and_write(path: Path) -> None:
        together.wait()
        use_write_ahead_log(path)
        with closing(sqlite3.connect(path, timeout=30)) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS t (x)")

    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            list(threads.map(open_and_write, [tmp_path / f"{number}.sqlite3"] * 8))
    with closing(sqlite3.connect(tmp_path / "0.sqlite3")) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_database_that_is_switched_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    use_write_ahead_log(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        use_write_ahead_log(path)
