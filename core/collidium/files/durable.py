"""Files that are there whole and survive a power cut, or are not there; and files that are mostly holes."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final

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
    # Unlike a rename, a link never replaces what is there already.
    try:
        with _new_file(path, path.hardlink_to, 0o600) as file:
            file.write(text.encode())
    except FileExistsError:
        return False
    return True


def replace(path: Path, text: str, mode: int = 0o666) -> None:
    """Write a file in place of whatever there is, as :func:`replacing` does."""
    with replacing(path, mode) as file:
        file.write(text.encode())


def replacing(path: Path, mode: int = 0o666) -> AbstractContextManager[BinaryIO]:
    """Open a new file that takes the place of ``path`` when the context ends, whole and safe on disk.

    Where the context or the disk fails, what was at ``path`` stays. ``mode`` is less the umask. Blocks on the
    disk.
    """
    return _new_file(path, lambda new: new.replace(path), mode)


@contextmanager
def _new_file(path: Path, name: Callable[[Path], object], mode: int) -> Iterator[BinaryIO]:
    """A file next to ``path``, which ``name`` gives its name once it is on disk."""
    new = path.with_name(f".{path.name}.{token_hex(8)}")
    with open(new, "xb", opener=partial(os.open, mode=mode)) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            name(new)
        finally:
            new.unlink(missing_ok=True)
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


def bytes_taken(status: os.stat_result) -> int:
    """Return how many bytes a file takes: what it holds, or what it has on disk if that is more."""
    return max(status.st_size, _BLOCK_BYTES * status.st_blocks)


def is_sparse(status: os.stat_result) -> bool:
    """Return whether a file is mostly holes."""
    return status.st_size > _SMALL + _COMPRESSION * _BLOCK_BYTES * status.st_blocks


def sha256_of(path: Path) -> str:
    """The checksum of a file, in hexadecimal. Blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
