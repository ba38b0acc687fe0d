"""Atomic file writes that survive a power cut; checksums, full disks and sparse files."""

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

#: Disk full, quota exceeded, or file too large.
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: Unit of ``st_blocks``, whatever the file system.
_BLOCK_BYTES: Final = 512
#: Maximum compression by file systems.
_COMPRESSION: Final = 8
#: Smaller files do not count as sparse, as some file systems store them without a block.
_SMALL: Final = 1024**2


def write_once(path: Path, text: str) -> bool:
    """Write a private file unless it exists; return whether it was written.

    Of concurrent threads or processes, exactly one writes it. Blocks on the disk.
    """
    if path.exists():
        return False
    # Unlike a rename, a link never replaces an existing file.
    try:
        with _new_file(path, path.hardlink_to, 0o600) as file:
            file.write(text.encode())
    except FileExistsError:
        return False
    return True


def replace(path: Path, text: str, mode: int = 0o666) -> None:
    """Write or replace a file, as :func:`replacing` does."""
    with replacing(path, mode) as file:
        file.write(text.encode())


def replacing(path: Path, mode: int = 0o666) -> AbstractContextManager[BinaryIO]:
    """Open a new file that replaces ``path`` atomically and durably when the context ends.

    If the context or the disk fails, ``path`` stays as it was. ``mode`` is subject to the umask. Blocks on
    the disk.
    """
    return _new_file(path, lambda new: new.replace(path), mode)


@contextmanager
def _new_file(path: Path, name: Callable[[Path], object], mode: int) -> Iterator[BinaryIO]:
    """Open a file next to ``path``; ``name`` gives it its name once it is on disk."""
    new = path.with_name(f".{path.name}.{token_hex(8)}")
    with open(new, "xb", opener=partial(os.open, mode=mode)) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            name(new)
        finally:
            new.unlink(missing_ok=True)
    sync(path.parent)


def is_full(error: OSError) -> bool:
    """Whether a write failed for lack of space."""
    return error.errno in _NO_ROOM


def sync(path: Path) -> None:
    """Make the content of a file, or the names in a directory, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def bytes_taken(status: os.stat_result) -> int:
    """Return the size of a file, or its size on disk if that is larger."""
    return max(status.st_size, _BLOCK_BYTES * status.st_blocks)


def is_sparse(status: os.stat_result) -> bool:
    """Return whether a file is mostly holes."""
    return status.st_size > _SMALL + _COMPRESSION * _BLOCK_BYTES * status.st_blocks


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. Blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
