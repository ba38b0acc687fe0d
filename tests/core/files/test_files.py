"""Files: written once or replaced whole, locks, and the first opening of a database."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from collidium.files.durable import is_full, replace, write_once
from collidium.files.held import locked
from collidium.files.write_ahead_log import use_write_ahead_log


def test_a_file_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    assert write_once(tmp_path / "key", "é\n")
    assert (tmp_path / "key").read_text(encoding="utf-8") == "é\n"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("first")
    assert not write_once(tmp_path / "key", "second")
    assert (tmp_path / "key").read_text() == "first"


def test_of_many_at_once_one_writes(tmp_path: Path) -> None:
    writers = 8
    together = Barrier(writers)

    def write(number: int) -> bool:
        together.wait()
        return write_once(tmp_path / "key", str(number))

    with ThreadPoolExecutor(writers) as threads:
        wrote = list(threads.map(write, range(writers)))
    assert wrote.count(True) == 1
    assert (tmp_path / "key").read_text() == str(wrote.index(True))
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_file_is_replaced_whole_or_stays(tmp_path: Path) -> None:
    replace(tmp_path / "state", "first")
    replace(tmp_path / "state", "second")
    assert (tmp_path / "state").read_text() == "second"
    with pytest.raises(UnicodeEncodeError):
        replace(tmp_path / "state", "half \ud800")
    assert (tmp_path / "state").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_replaced_file_has_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    replace(tmp_path / "secret", "old")
    replace(tmp_path / "secret", "new", mode=0o600)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_recognised(number: int) -> None:
    assert is_full(OSError(number, os.strerror(number)))
    assert not is_full(OSError(errno.EACCES, "no"))


# -- locks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lock", "."])
def test_a_lock_has_one_holder(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with locked(path, wait=False) as first, locked(path, wait=False) as second:
        assert (first, second) == (True, False)
    with locked(path, wait=False) as again:
        assert again


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    order = []

    def work(number: int) -> None:
        with locked(tmp_path / "lock"):
            order.append(number)

    with ThreadPoolExecutor(1) as thread:
        with locked(tmp_path / "lock"):
            waiting = thread.submit(work, 2)
            order.append(1)
        waiting.result(60)
    assert order == [1, 2]
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600


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
