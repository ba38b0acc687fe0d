"""Locks between processes, which end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file or directory until its last descriptor is closed.

    Returns False where another has locked it and ``wait`` is not set.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a directory, or a file that is made when absent, within the context; see :func:`lock`."""
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags, 0o600)
    try:
        yield lock(descriptor, wait=wait)
    finally:
        os.close(descriptor)
