"""A file or a directory has one holder at a time."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from collidium.files.held import locked


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
