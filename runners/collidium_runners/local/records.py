"""The files in a job's folder, through which engine and shepherd communicate; and processes found in /proc.

::

    job.json       the command, written by the engine
    lock           locked while the shepherd runs
    started.json   the shepherd's process
    ended.json     the exit code of the pipeline
    log, log.1     the end of the pipeline's output
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self, TypeVar

import msgspec

from collidium.files import durable

PROC: Final = Path("/proc")
#: States of processes that have ended but still have an entry.
_DEAD: Final = frozenset("ZXx")
logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Process:
    """A process, distinguished from others that had or will have the same id."""

    pid: int
    #: When it started, in clock ticks since the boot.
    start: int
    #: The id of the boot.
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the process that has this id now, None if there is none."""
        status = _status(pid)
        return cls(pid, status.start, boot()) if status else None

    @property
    def is_alive(self) -> bool:
        return self.boot == boot() and (status := _status(self.pid)) is not None and self._is(status)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process unless it has ended, even if its id was reused."""
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            try:
                # From here on the descriptor refers to the same process.
                if self.is_alive:
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)

    def descendants(self) -> list[Process]:
        """Return the children of this process, their children, and so on; none if it has ended."""
        if not self.is_alive:
            return []
        found = {self.pid}
        family: list[Process] = []
        while more := _matching(lambda status: status.parent in found and status.pid not in found):
            family += more
            found.update(process.pid for process in more)
        return family

    def _is(self, status: _Status) -> bool:
        return status.start == self.start and status.state not in _DEAD


def with_variable(name: str, value: str) -> list[Process]:
    """Return the processes with that variable in their initial environment."""
    wanted = f"{name}={value}".encode()
    return _matching(lambda status: wanted in _environment(status.pid).split(b"\0"))


def boot() -> str:
    """Return the id of the current boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True, slots=True)
class _Status:
    pid: int
    state: str
    parent: int
    start: int


def _status(pid: int) -> _Status | None:
    """Return the fields of ``stat`` (proc(5)); None if there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # After the program's name, which may contain anything.
    words = text.rpartition(")")[2].split()
    return _Status(pid, state=words[0], parent=int(words[1]), start=int(words[19]))


def _environment(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "environ").read_bytes()
    except OSError:  # it has ended, or belongs to another user
        return b""


def _matching(wanted: Callable[[_Status], bool]) -> list[Process]:
    here = boot()
    return [
        Process(status.pid, status.start, here)
        for status in _all()
        if wanted(status) and status.state not in _DEAD
    ]


def _all() -> Iterator[_Status]:
    for folder in PROC.iterdir():
        if folder.name.isdecimal() and (status := _status(int(folder.name))):
            yield status


@dataclass(frozen=True, slots=True)
class JobSpecification:
    """The command that a shepherd runs."""

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    niceness: int
    #: Memory limit of each process; 0 for none.
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Started:
    """The start of a shepherd; ``at`` in seconds since 1970."""

    shepherd: Process
    at: float


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a pipeline; ``at`` in seconds since 1970."""

    exit_code: int
    at: float


_FILES: Final = {JobSpecification: "job.json", Started: "started.json", Ended: "ended.json"}


class Record:
    """The files of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: The name of the job.
        self.name = folder.name
        self.lock = folder / "lock"

    @property
    def specification(self) -> JobSpecification | None:
        return self._read(JobSpecification)

    @property
    def started(self) -> Started | None:
        return self._read(Started)

    @property
    def ended(self) -> Ended | None:
        return self._read(Ended)

    def write(self, record: JobSpecification | Started | Ended) -> None:
        """Write a record atomically and durably."""
        durable.replace(self.folder / _FILES[type(record)], msgspec.json.encode(record).decode())

    def _read(self, kind: type[T]) -> T | None:
        """Return a record; None if it is missing, or damaged, which must not affect other jobs."""
        file = self.folder / _FILES[kind]
        try:
            return msgspec.json.decode(file.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            logger.error("%s is invalid: %r", file, error)
            return None


#: A log file of this size is renamed to ``log.1``, replacing the one before.
LOG_BYTES: Final = 10 * 1024**2

_TAIL_BYTES: Final = 65536


class Log:
    """The files ``log`` and ``log.1`` in a folder."""

    def __init__(self, folder: Path) -> None:
        self._file, self._older = _files(folder)
        self._open: IO[bytes] | None = None
        self._room = 0

    def write(self, data: bytes) -> None:
        """Write to the log; errors such as a full disk are ignored."""
        with suppress(OSError):
            if self._open is None or self._room <= 0:
                self._begin()
            if self._open is not None:
                self._open.write(data)
                self._room -= len(data)

    def copy(self, source: IO[bytes]) -> None:
        """Write the output of a pipe until its other end is closed."""
        while data := os.read(source.fileno(), 65536):
            self.write(data)

    def _begin(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
            self._file.replace(self._older)
        self._open = self._file.open("wb", buffering=0)
        self._room = LOG_BYTES


def tail(folder: Path) -> bytes:
    """Return the end of the log."""
    file, older = _files(folder)
    return (_end(older) + _end(file))[-_TAIL_BYTES:]


def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "log", folder / "log.1"


def _end(file: Path) -> bytes:
    try:
        with file.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            return log.read()
    except FileNotFoundError:
        return b""
