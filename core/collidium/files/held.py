"""Locks between processes, and files in use: held by a lock, swept up when their process was killed.

Code that writes below a directory that outlives the process takes a :class:`HeldFile` or a
:func:`held_directory` there; a process that starts calls :func:`sweep` on the same directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from collidium.errors import TooLarge, Unavailable
from collidium.files.durable import is_full, sha256_of, sync_directory
from collidium.runtime.waiting import entered_in_thread


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


#: Bytes 18 and 19 of a database define how it is written and read: 2 is by a write-ahead log.
#: Source: the SQLite documentation, "Database File Format", 1.3.
_VERSIONS: Final = slice(18, 20)
_BY_LOG: Final = b"\x02\x02"


def use_write_ahead_log(path: Path) -> None:
    """Switch the database at ``path``, which may be new; nothing happens to one that is switched.

    Two processes that switch at once meet "database is locked", whatever their busy timeouts: SQLite does
    not wait there. So only one at a time does it, held by a lock on the directory.
    """
    import sqlite3  # 3 ms, and most who lock need no database

    with locked(path.parent):
        if not _is_switched(path):
            with closing(sqlite3.connect(path)) as database:
                database.execute("PRAGMA journal_mode = WAL")


def _is_switched(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(_VERSIONS.stop)[_VERSIONS] == _BY_LOG
    except FileNotFoundError:
        return False


# -- files and directories in use -------------------------------------------------------------------------

PREFIX: Final = "held-"
FILE: Final = ".part"
#: A directory is next to the file whose lock holds it, under the same name but for this.
DIRECTORY: Final = ".scratch"


#: Bytes that files which stay leave on the disk (of a small one a twentieth), for the database and all else.
ROOM: Final = 5 * 1024**3


class HeldFile:
    """A new file below ``directory``, hashed while it is written, that is not swept while it is held.

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
        return cls(*_make(directory))

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


class GrowingFile(HeldFile):
    """A file that several requests append to, one at a time, each where the one before ended.

    It stays when it is let go, safe on disk.
    """

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """Open a file, which is made when absent, at its end; None while another holds it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        # Deleted after it was opened: what is appended would be lost.
        if not lock(descriptor) or not os.fstat(descriptor).st_nlink:
            os.close(descriptor)
            return None
        file = cls(path, descriptor)
        file.size = file._start = os.fstat(descriptor).st_size
        return file

    _start = 0

    def write(self, data: bytes, limit: int) -> None:
        """As of any file, but Unavailable already where little room is left: others let go of theirs soon."""
        usage = shutil.disk_usage(self.path.parent)
        if usage.free < min(ROOM, usage.total // 20):
            raise _no_room()
        super().write(data, limit)

    @property
    def sha256(self) -> str:
        """The checksum of all of it; reads the file again where it was not written by this process alone."""
        return super().sha256 if self._start == 0 else sha256_of(self.path)

    def let_go(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            if self._held:
                self._held = False
                os.fsync(self._descriptor)
                os.close(self._descriptor)


def durable_size(path: Path) -> int:
    """How many bytes of a file, which may be missing, survive a power cut."""
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return 0


@contextmanager
def held_directory(directory: Path) -> Iterator[Path]:
    """A new directory below ``directory``, for its owner alone, that is not swept within the context.

    It is deleted in the end, unless it was moved away.
    """
    file, descriptor = _make(directory)
    try:
        held = _directory_of(file)
        held.mkdir(mode=0o700)
        yield held
    finally:
        _delete(file)
        os.close(descriptor)


def scratch_directory(directory: Path) -> AbstractAsyncContextManager[Path]:
    """A :func:`held_directory` for the event loop: threads make and delete it."""
    return entered_in_thread(held_directory(directory))


@contextmanager
def work_directory(directory: Path) -> Iterator[Path]:
    """A :func:`held_directory` in one that is for this alone: swept before, and gone with the last in it."""
    sweep(directory)
    try:
        with held_directory(directory) as held:
            yield held
    finally:
        with suppress(OSError):  # another process may be at work there
            directory.rmdir()


def sweep(directory: Path) -> int:
    """Delete what killed processes held below ``directory``, which may be missing.

    Returns how many files or directories. Safe at any time.
    """
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
    """Delete files that were last written before, in seconds since 1970, and that no process has locked."""
    for path in paths:
        with suppress(FileNotFoundError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_mtime < before and lock(file.fileno()):
                path.unlink()


def _make(directory: Path) -> tuple[Path, int]:
    directory.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor, name = tempfile.mkstemp(prefix=PREFIX, suffix=FILE, dir=directory)
        # A sweep may have seen the file before it was held: then it is gone, or about to be.
        if lock(descriptor) and os.fstat(descriptor).st_nlink:
            return Path(name), descriptor
        os.close(descriptor)
        Path(name).unlink(missing_ok=True)


def _directory_of(file: Path) -> Path:
    return file.with_suffix(DIRECTORY)


def _delete(file: Path) -> bool:
    """Delete a file and its directory; whether both are gone.

    Where a thread still writes to the directory both stay, for a later sweep.
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
