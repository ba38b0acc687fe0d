"""What a job leaves in place of a file neither blocks its reader nor fills the memory."""

from __future__ import annotations

import os
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from collidium.files import untrusted
from collidium.files.untrusted import NotRegular, TooManyNames

Make = Callable[[Path], object]


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        Path.mkdir,
        make_socket,
        lambda path: path.symlink_to("/etc/passwd"),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
    ],
    ids=["pipe", "folder", "socket", "link", "device", "loop"],
)
def test_only_regular_files_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: Make) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    make(Path("found"))
    before = len([*Path("/proc/self/fd").iterdir()])
    for read in (untrusted.read, untrusted.tail):
        with pytest.raises(NotRegular):
            read(Path("found"), 100)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_sparse_file_takes_no_more_memory_than_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 2**40)
    tracemalloc.start()
    try:
        assert untrusted.read(path, 1000) == untrusted.tail(path, 1000) == bytes(1000)
        assert tracemalloc.get_traced_memory()[1] < 1024**2
    finally:
        tracemalloc.stop()


def test_the_beginning_and_the_end_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"01234")
    assert [untrusted.read(path, most) for most in (0, 3, 5, 99)] == [b"", b"012", b"01234", b"01234"]
    assert [untrusted.tail(path, most) for most in (0, 3, 5, 99)] == [b"", b"234", b"01234", b"01234"]
    with pytest.raises(FileNotFoundError):
        untrusted.read(tmp_path / "absent", 1)


def test_a_folder_of_many_names_is_not_read_whole(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).touch()
    assert sorted(untrusted.names(tmp_path, 5)) == ["0", "1", "2", "3", "4"]
    with pytest.raises(TooManyNames):
        untrusted.names(tmp_path, 4)
