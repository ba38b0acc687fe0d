"""The folders of jobs: their removal does not keep the spool locked while files are deleted."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from tests.waiting import eventually

from collidium import plugins, settings
from collidium.server import doctor
from collidium_runners.spool.engine import REMOVED, JobFolders, leftovers
from collidium_runners.spool.jobs import SpooledRunner


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


def test_folders_of_other_users_are_named_with_a_command(tmp_path: Path) -> None:
    """As a container leaves them that maps users: here all files are of another user than the one named."""
    left = tmp_path / REMOVED / "a b"
    left.mkdir(parents=True)
    (left / "tracks.parquet").touch()
    own = left.stat().st_uid
    assert leftovers(tmp_path / REMOVED, own) == leftovers(tmp_path / "none", own + 1) == ""
    text = leftovers(tmp_path / REMOVED, own + 1)
    assert text.startswith("1 folders of ended jobs have files of other users: sudo find ")
    _, *command = shlex.split(text.partition(": ")[2])
    subprocess.run(command, check=True)
    assert [*(tmp_path / REMOVED).iterdir()] == []


async def test_the_doctor_names_what_a_runner_cannot_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings.load(data_dir=tmp_path, run_mode="real", runner="local")
    loaded = plugins.load(chosen.plugins_blocked)
    runner = loaded.runners(chosen).get("local")
    assert isinstance(runner, SpooledRunner)
    left = runner._jobs._folders._directory / REMOVED / "left"
    await runner.close()
    left.mkdir(parents=True)
    user = left.stat().st_uid + 1
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert "1 folders of ended jobs" in (await doctor._runner(chosen, loaded))[1]


def test_folders_that_are_just_deleted_are_no_leftovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "left").mkdir()
    own = tmp_path.stat().st_uid
    monkeypatch.setattr(Path, "iterdir", lambda _: iter([tmp_path / "gone", tmp_path / "left"]))
    assert leftovers(tmp_path, own) == ""
    assert leftovers(tmp_path, own + 1).startswith("1 folders")
