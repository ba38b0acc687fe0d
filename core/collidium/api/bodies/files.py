"""Files being received: held by a lock while in use, and swept up when their process was killed."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Final, Self

from collidium.errors import TooLarge, Unavailable

PREFIX: Final = "received-"
SUFFIX: Final = ".part"


class HeldFile:
    """A new file below ``directory``, hashed while it is written, that nobody sweeps while it is held.

    Writing and letting go may happen in different threads: a cancelled request lets go of its file while a
    thread may still be writing to it.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.size = 0
        self._sha256 = hashlib.sha256()
        self._descriptor = descriptor
        self._held = True
        self._lock = threading.Lock()

    @classmethod
    def create(cls, directory: Path) -> Self:
        """Make an empty file, readable by its owner alone, and hold it."""
        directory.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor, name = tempfile.mkstemp(prefix=PREFIX, suffix=SUFFIX, dir=directory)
            # A sweep may have seen the file before it was held: then it is gone, or about to be.
            if _lock(descriptor) and os.fstat(descriptor).st_nlink:
                return cls(Path(name), descriptor)
            os.close(descriptor)
            Path(name).unlink(missing_ok=True)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def write(self, data: bytes, limit: int) -> None:
        """Append; raises TooLarge past ``limit`` bytes in all, and Unavailable when the disk is full."""
        with self._lock:
            if not self._held:
                return
            if self.size + len(data) > limit:
                raise TooLarge(f"the file is larger than {limit:,} bytes, the most that is taken here")
            self._sha256.update(data)
            _write_all(self._descriptor, data)
            self.size += len(data)

    def move_to(self, destination: Path) -> None:
        """Give the file, safe on disk, its place; a file that is there is replaced."""
        os.fsync(self._descriptor)
        destination.parent.mkdir(parents=True, exist_ok=True)
        self.path.replace(destination)
        sync_directory(destination.parent)

    def let_go(self) -> None:
        """Delete the file, unless it has been moved away. Idempotent."""
        with self._lock:
            if self._held:
                self._held = False
                self.path.unlink(missing_ok=True)
                os.close(self._descriptor)


def sweep(directory: Path) -> int:
    """Delete files left by processes that were killed, and directories named after them that others made.

    Returns how many files. Safe at any time.
    """
    swept = 0
    for path in directory.glob(f"{PREFIX}*{SUFFIX}"):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            if _lock(descriptor):
                path.unlink(missing_ok=True)
                swept += 1
        finally:
            os.close(descriptor)
    for scratch in directory.glob(f"{PREFIX}*{SUFFIX}.*/"):
        if not scratch.with_suffix("").exists():
            shutil.rmtree(scratch, ignore_errors=True)
    return swept


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise Unavailable("there is no room left on the server's disk", retry_after=300) from None
        raise
