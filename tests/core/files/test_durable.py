"""Files that survive: written once, whoever writes, or in place of what was there."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from collidium.files.durable import is_full, replace, write_once


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
