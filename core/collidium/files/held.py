"""Locks between processes, and temporary files that are locked while in use.

Code that writes to a directory that outlives the process uses a :class:`HeldFile` or a
:func:`held_directory`. A process that starts calls :func:`sweep` on that directory, which deletes those of
killed processes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from collidium.errors import TooLarge, Unavailable
from collidium.files.durable import is_full, sha256_of, sync
from collidium.runtime.waiting import entered_in_thread


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file or directory until its last descriptor is closed.

    Returns False if it is locked already and ``wait`` is not set.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a directory, or a file that is created if absent, while the context lasts; see :func:`lock`."""
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags, 0o600)
    try:
        yield lock(descriptor, wait=wait)
    finally:
        os.close(descriptor)


# -- temporary files and directories ----------------------------------------------------------------------

PREFIX: Final = "held-"
FILE: Final = ".part"
#: A directory is next to its lock file, with the same name except for this suffix.
DIRECTORY: Final = ".scratch"


#: Bytes on the disk that a :class:`GrowingFile` leaves free for the database and other files; at most a
#: twentieth of the disk.
ROOM: Final = 5 * 1024**3


class HeldFile:
    """A temporary file, hashed while it is written, that is not swept until it is let go.

    It may be written and let go in different threads: a cancelled request lets go of its file while a thread
    may still be writing.
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
        """Create and lock an empty private file."""
        return cls(*_make(directory))

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def write(self, data: bytes, limit: int) -> None:
        """Append. Raises TooLarge beyond ``limit`` bytes in all, and Unavailable if the disk is full."""
        with self._lock:
            if not self._held:
                return
            if self.size + len(data) > limit:
                raise TooLarge(f"the file is larger than {limit:,} bytes, the most that is taken here")
            self._sha256.update(data)
            _write_all(self._descriptor, data)
            self.size += len(data)

    def move_to(self, destination: Path, *, make_parents: bool = True) -> None:
        """Move the file durably to ``destination``, replacing an existing file."""
        os.fsync(self._descriptor)
        if make_parents:
            destination.parent.mkdir(parents=True, exist_ok=True)
        self.path.replace(destination)
        sync(destination.parent)

    def let_go(self) -> None:
        """Delete the file, unless it has been moved away. Idempotent."""
        with self._lock:
            if self._held:
                self._held = False
                self.path.unlink(missing_ok=True)
                os.close(self._descriptor)


class GrowingFile(HeldFile):
    """A file that several requests append to, one at a time. It stays on disk when it is let go."""

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """Open a file at its end, creating it if absent; None while it is held elsewhere."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        # A file without links was deleted after it was opened: additions would be lost.
        if not lock(descriptor) or not os.fstat(descriptor).st_nlink:
            os.close(descriptor)
            return None
        file = cls(path, descriptor)
        file.size = file._start = os.fstat(descriptor).st_size
        return file

    _start = 0

    def write(self, data: bytes, limit: int) -> None:
        """Append as :class:`HeldFile` does. Raises Unavailable also if less than ``ROOM`` is left."""
        usage = shutil.disk_usage(self.path.parent)
        if usage.free < min(ROOM, usage.total // 20):
            raise _no_room()
        super().write(data, limit)

    @property
    def sha256(self) -> str:
        """The checksum of the whole file, which is read again if an earlier request wrote part of it."""
        return super().sha256 if self._start == 0 else sha256_of(self.path)

    def let_go(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            if self._held:
                self._held = False
                os.fsync(self._descriptor)
                os.close(self._descriptor)


def durable_size(path: Path) -> int:
    """Sync a file to disk and return its size, 0 if it is missing."""
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return 0


@contextmanager
def held_directory(directory: Path) -> Iterator[Path]:
    """Create a private temporary directory; delete it at the end, unless it was moved away."""
    file, descriptor = _make(directory)
    try:
        held = _directory_of(file)
        held.mkdir(mode=0o700)
        yield held
    finally:
        _delete(file)
        os.close(descriptor)


def scratch_directory(directory: Path) -> AbstractAsyncContextManager[Path]:
    """Return a :func:`held_directory` for the event loop, created and deleted in threads."""
    return entered_in_thread(held_directory(directory))


@contextmanager
def work_directory(directory: Path) -> Iterator[Path]:
    """Create a :func:`held_directory` in a directory of its own, which is deleted with the last one."""
    sweep(directory)
    try:
        with held_directory(directory) as held:
            yield held
    finally:
        with suppress(OSError):  # another process may use it
            directory.rmdir()


def sweep(directory: Path) -> int:
    """Delete temporary files and directories of killed processes; return their number. Safe at any time."""
    swept = 0
    for path in directory.glob(f"{PREFIX}*{FILE}"):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            if lock(descriptor):
                swept += _delete(path)
        finally:
            os.close(descriptor)
    return swept


def delete_older(paths: Iterable[Path], before: float) -> None:
    """Delete unlocked files that were last written before a time in seconds since 1970."""
    for path in paths:
        with suppress(FileNotFoundError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_mtime < before and lock(file.fileno()):
                path.unlink()


def _make(directory: Path) -> tuple[Path, int]:
    directory.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor, name = tempfile.mkstemp(prefix=PREFIX, suffix=FILE, dir=directory)
        # A sweep may have seen the file before it was locked: then it is, or will be, deleted.
        if lock(descriptor) and os.fstat(descriptor).st_nlink:
            return Path(name), descriptor
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)


def _directory_of(file: Path) -> Path:
    return file.with_suffix(DIRECTORY)


def _delete(file: Path) -> bool:
    """Delete a file and its directory; return whether both are gone.

    If a thread still writes to the directory, both stay for a later sweep.
    """
    directory = _directory_of(file)
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        return False
    file.unlink(missing_ok=True)
    return True


def _no_room() -> Unavailable:
    return Unavailable("the server's disk is full", retry_after=300)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError as error:
        if is_full(error):
            raise _no_room() from None
        raise
