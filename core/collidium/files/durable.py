"""Files that are there whole and survive a power cut, or are not there; and files that are mostly holes."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Final

#: No space, none in the quota, or files may not be as large.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: Unit of ``st_blocks``, whatever the file system.
_BLOCK_BYTES: Final = 512
#: How many times its bytes on disk a file may be long: some file systems compress.
_COMPRESSION: Final = 8
#: Smaller files are never sparse: some file systems keep them without a block.
_SMALL: Final = 1024**2


def write_once(path: Path, text: str) -> bool:
    """Write a file, readable by its owner alone, unless there is one already; whether it was written.

    Of those that write at the same moment, threads or processes, one does. Blocks on the disk.
    """
    if path.exists():
        return False
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link never replaces what is there already.
        path.hardlink_to(beside)
    except FileExistsError:
        return False
    finally:
        beside.unlink()
    sync_directory(path.parent)
    return True


def replace(path: Path, text: str) -> None:
    """Write a file in place of whatever there is: afterwards it is that or this, whole.

    For whoever is alone in writing it. Blocks on the disk.
    """
    beside = path.with_name(f"{path.name}.unfinished")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:  # a full disk, or an interrupt
        beside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def is_full(error: OSError) -> bool:
    """Whether a write failed because there is no room for more."""
    return error.errno in _NO_ROOM


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def bytes_taken(told: os.stat_result) -> int:
    """Return how many bytes a file takes: what it holds, or what it has on disk if that is more."""
    return max(told.st_size, _BLOCK_BYTES * told.st_blocks)


def is_sparse(told: os.stat_result) -> bool:
    """Return whether a file is mostly holes."""
    return told.st_size > _SMALL + _COMPRESSION * _BLOCK_BYTES * told.st_blocks
