"""A disk that is full for this process."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """No file of this process may become larger than ``size`` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def full_disk(database_file: Path) -> Iterator[None]:
    """No file of this process may become larger than the write-ahead log of the database is."""
    with limited_files(database_file.with_name(f"{database_file.name}-wal").stat().st_size):
        yield
