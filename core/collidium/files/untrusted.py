"""Reads what a job can write, in bounded time and memory.

Where a file is expected a job may leave a pipe, which blocks its reader, a device, a link to another file, a
sparse file of terabytes, or a folder with millions of names.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

#: Maximum number of names of a folder that are read.
MAX_NAMES: Final = 100_000


class NotRegular(OSError):
    """There is something else than a regular file."""


class TooManyNames(OSError):
    """A folder has more names than are read."""


@contextmanager
def opened(path: str | Path, folder: int | None = None) -> Iterator[BinaryIO]:
    """Open a regular file, in the folder of a descriptor if one is given, without following a link.

    Raises NotRegular for anything else, and OSError. Never blocks on a pipe.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:  # a link, a socket
            raise NotRegular(error.errno, "is not a regular file", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(errno.EINVAL, "is not a regular file", str(path))
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read(path: Path, most: int) -> bytes:
    """Return the first bytes of a regular file, at most ``most``. Raises NotRegular and OSError."""
    with opened(path) as file:
        return file.read(most)


def tail(path: Path, most: int) -> bytes:
    """Return the last bytes of a regular file, at most ``most``. Raises NotRegular and OSError."""
    with opened(path) as file:
        file.seek(max(file.seek(0, os.SEEK_END) - most, 0))
        return file.read(most)


def new(path: Path) -> FileIO:
    """Open an empty file to write, in place of a pipe that was left there. Raises OSError."""
    if path.is_fifo():
        path.unlink()
    return path.open("wb", buffering=0)


def names(folder: Path, most: int = MAX_NAMES) -> list[str]:
    """Return the names in a folder. Raises TooManyNames, NotADirectoryError and OSError."""
    with os.scandir(folder) as entries:
        found = [entry.name for entry in islice(entries, most + 1)]
    if len(found) > most:
        raise TooManyNames(errno.EFBIG, f"has more than {most} names", str(folder))
    return found
