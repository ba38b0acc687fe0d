"""The folders of jobs: their removal does not keep the spool locked while files are deleted."""

from __future__ import annotations

from pathlib import Path

from tests.waiting import eventually

from collidium_runners.spool.engine import REMOVED, JobFolders


def test_a_cleared_folder_is_moved_aside_and_deleted(tmp_path: Path) -> None:
    folders = JobFolders(tmp_path)
    part, scratch = folders.make("0c62")
    for number in range(1000):
        (scratch / f"{number}").touch()
    (part / "tracks.parquet").touch()
    left = tmp_path / REMOVED / "of a killed process"
    left.mkdir(parents=True)
    folders.clear("0c62", keep_output=True)
    assert not scratch.exists()
    assert part.exists()
    folders.clear("0c62", keep_output=False)
    assert folders.with_output() == []
    folders.clear("0c62", keep_output=False)
    eventually(lambda: [*(tmp_path / REMOVED).iterdir()] == [])
    part, _ = folders.make("0c62")
    assert [*part.iterdir()] == []


def test_a_folder_that_cannot_be_moved_aside_is_deleted(tmp_path: Path) -> None:
    """On a full disk no folder can be created."""
    folders = JobFolders(tmp_path)
    _, scratch = folders.make("0c62")
    (tmp_path / REMOVED).touch()
    folders.clear("0c62", keep_output=True)
    assert not scratch.exists()
