"""A request's folder on the shared file system, without a Slurm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from collidium_runners.slurm.folder import RequestFolder


@pytest.fixture
def _others_may_read() -> Iterator[None]:
    """The umask that most machines have."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_others_may_read")
def test_the_folder_is_private(tmp_path: Path) -> None:
    folder = RequestFolder(tmp_path / "slurm" / "r1")
    folder.claim_parts(3)
    folder.claim_job(7)
    folder.mark_cancelled()
    made = [tmp_path / "slurm", *(tmp_path / "slurm").rglob("*")]
    assert {path.name for path in made} == {"slurm", "r1", "parts", "job", "cancelled"}
    assert [path for path in made if path.stat().st_mode & 0o077] == []
