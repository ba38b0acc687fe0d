"""Progress that jobs write: what is sound of it is read, and nothing else is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from collidium.contracts.runner import JobProgress
from collidium_runners.command import job_progress, parse_progress, read_progress

SOUND = '{"stage": 1, "stages": 4, "title": "a\\u0007\\nb", "fraction": 0.25, "seconds_left": 9.5}'


def test_progress_is_one_sound_line() -> None:
    assert parse_progress(SOUND) == JobProgress(1, 4, "a b", 0.25, 9.5)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ('"stage": 1', '"stage": 5'),
        ('"stage": 1', '"stage": 0'),
        ('"stages": 4', f'"stages": {2**80}'),
        ("0.25", "1.5"),
        ("0.25", "NaN"),
        ("9.5", "-1"),
        ("9.5", "1e300"),
        ("{", "["),
        ("{", '{"more": ' + "[" * 4000),
        ("stage", "\ud800"),
    ],
)
def test_nonsense_is_no_progress(part: str, other: str) -> None:
    assert parse_progress(SOUND.replace(part, other, 1)) is None


def test_only_a_file_of_the_job_is_read(tmp_path: Path) -> None:
    """A job could make a link to a file of the server, or a pipe that never says anything."""
    file = tmp_path / "progress.json"
    assert read_progress(file) is None
    os.mkfifo(file)
    assert read_progress(file) is None
    file.rename(tmp_path / "pipe")
    file.mkdir()
    before = len([*Path("/proc/self/fd").iterdir()])
    assert read_progress(file) is None
    assert len([*Path("/proc/self/fd").iterdir()]) == before  # it is read again and again
    file.rmdir()
    (tmp_path / "secret").write_text(SOUND)
    file.symlink_to(tmp_path / "secret")
    assert read_progress(file) is None
    file.unlink()
    file.write_text(SOUND + " " * 10_000)
    assert read_progress(file) == parse_progress(SOUND)


def test_the_progress_of_a_job_is_that_of_its_parts() -> None:
    half = JobProgress(1, 2, "simulation", 1.0, 3.0)
    whole = JobProgress(2, 2, "tables", 1.0, 0.0)
    assert job_progress([], 4) is None
    assert job_progress([None, half], 1) == half
    assert job_progress([half, whole, None], 4) == JobProgress(1, 1, "1 of 4 parts done", 0.375)
