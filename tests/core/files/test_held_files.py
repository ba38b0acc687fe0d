"""Files and directories in use are spared, and gone once no process uses them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collidium import settings
from collidium.errors import Unavailable
from collidium.files.data_directory import sweep_old
from collidium.files.held import (
    ROOM,
    GrowingFile,
    HeldFile,
    delete_older,
    held_directory,
    locked,
    scratch_directory,
    sweep,
)
from collidium.testing.processes import ending_with_parent

#: Holds a file and a directory until it is killed.
HOLDER = """
import sys
from pathlib import Path
from collidium.files.held import ROOM, GrowingFile, HeldFile, held_directory

file = HeldFile.create(Path(sys.argv[1]))
file.write(b"hits", 10)
with held_directory(Path(sys.argv[1])) as directory:
    (directory / "rows").mkdir()
    (directory / "rows" / "0.arrow").write_bytes(b"rows")
    print(file.path, directory, flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(directory: Path) -> Iterator[tuple[subprocess.Popen[str], list[Path]]]:
    """A process that holds a file and a directory below ``directory``, and these two."""
    with subprocess.Popen(
        ending_with_parent([sys.executable, "-c", HOLDER, str(directory)]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, [Path(name) for name in process.stdout.readline().split()]
        process.kill()


def test_files_of_killed_processes_are_removed_and_others_kept(tmp_path: Path) -> None:
    with another_process(tmp_path) as (process, held), held_directory(tmp_path) as own:
        (own / "kept").touch()
        assert sweep(tmp_path) == 0
        assert all(path.exists() for path in held)
        process.kill()
        process.wait()
        assert sweep(tmp_path) == 2
        assert not any(path.exists() for path in held)
        assert (own / "kept").exists()
    assert list(tmp_path.iterdir()) == []


def test_what_others_put_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.part").touch()
    (tmp_path / "version").mkdir()
    assert sweep(tmp_path) == 0
    assert len(list(tmp_path.iterdir())) == 2
    assert sweep(tmp_path / "missing") == 0


def test_a_file_moved_away_is_kept_and_not_swept(tmp_path: Path) -> None:
    file = HeldFile.create(tmp_path / "received")
    file.write(b"hits", 10)
    file.move_to(tmp_path / "kept" / "predictions")
    file.let_go()
    file.let_go()
    file.write(b"too late", 100)
    assert (tmp_path / "kept" / "predictions").read_bytes() == b"hits"
    assert sweep(tmp_path / "received") == 0


async def test_a_directory_moved_away_is_kept(tmp_path: Path) -> None:
    async with scratch_directory(tmp_path / "making") as directory:
        (directory / "manifest.json").touch()
        directory.rename(tmp_path / "made")
    assert (tmp_path / "made" / "manifest.json").exists()
    assert list((tmp_path / "making").iterdir()) == []


def test_what_cannot_be_deleted_is_left_for_a_later_sweep(tmp_path: Path) -> None:
    with held_directory(tmp_path) as directory:
        directory.rmdir()
        directory.touch()  # not even root deletes this as a directory
    assert sweep(tmp_path) == 0
    directory.unlink()
    assert sweep(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []


def test_old_files_are_deleted_unless_a_process_has_them(tmp_path: Path) -> None:
    for name in ("old", "held", "young", "gone"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000, 3000 if name == "young" else 1000))
    paths = sorted(tmp_path.iterdir())
    (tmp_path / "gone").unlink()
    with locked(tmp_path / "held"):
        delete_older(paths, 2000)
    assert {path.name for path in tmp_path.iterdir()} == {"held", "young"}


def test_records_of_jobs_that_ended_long_ago_are_swept(tmp_path: Path) -> None:
    configured = settings.load(data_dir=tmp_path)
    kept = {tmp_path / "local-jobs/started/a.json", tmp_path / "storage/b", tmp_path / "mock-jobs/c.json"}
    for path in {*kept, tmp_path / "local-jobs/ended/d.json", tmp_path / "mock-jobs/e.cancelled"}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1000, 3000 if path.name == "c.json" else 1000))
    sweep_old(configured, 2000, 2000)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == kept


def test_files_that_stay_leave_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of accounts may leave uploads unfinished: the database and submissions go on."""
    growing, held = GrowingFile.open(tmp_path / "upload"), HeldFile.create(tmp_path)
    assert growing is not None
    growing.write(b"hits", 8)
    full = shutil.disk_usage(tmp_path)._replace(total=10**13, free=ROOM - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    held.write(b"hits", 8)
    with pytest.raises(Unavailable, match="disk is full"):
        growing.write(b"more", 8)
    growing.let_go()
    held.let_go()
    assert (tmp_path / "upload").read_bytes() == b"hits"
