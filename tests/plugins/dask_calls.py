"""Functions that Dask's workers import and call."""

from __future__ import annotations

import os
from pathlib import Path
from time import sleep


def parent_of_parent(_: int) -> int:
    supervisor = os.getppid()
    return int(Path(f"/proc/{supervisor}/stat").read_text().rpartition(")")[2].split()[1])


def wait_for_word(name: str) -> str:
    """Note the process, and that it is not the first; return when released."""
    path = Path(name)
    if path.exists():
        path.with_suffix(".again").touch()
    path.write_text(str(os.getpid()))
    while not path.with_suffix(".go").exists():
        sleep(0.01)
    return name


def wait_with_file(names: tuple[Path, Path]) -> str:
    """The same, with a file of the storage."""
    assert names[1].is_file()
    return wait_for_word(str(names[0]))
