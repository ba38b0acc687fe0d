"""The files in a job's folder, through which engine and shepherd communicate.

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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeVar

import msgspec

from collidium.files import durable, untrusted
from collidium_runners.local.processes import JobProcess

logger = logging.getLogger(__name__)

T = TypeVar("T")


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
class StartRecord:
    """The start of a shepherd; ``at`` in seconds since 1970."""

    shepherd: JobProcess
    at: float


@dataclass(frozen=True, slots=True)
class EndRecord:
    """The end of a pipeline; ``at`` in seconds since 1970."""

    exit_code: int
    at: float


#: Maximum size of a record: a command and its environment.
_LONGEST: Final = 1024**2
_FILES: Final = {JobSpecification: "job.json", StartRecord: "started.json", EndRecord: "ended.json"}


class FolderRecord:
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
    def started(self) -> StartRecord | None:
        return self._read(StartRecord)

    @property
    def ended(self) -> EndRecord | None:
        return self._read(EndRecord)

    def write(self, record: JobSpecification | StartRecord | EndRecord) -> None:
        """Write a record atomically and durably."""
        durable.replace(self.folder / _FILES[type(record)], msgspec.json.encode(record).decode())

    def _read(self, kind: type[T]) -> T | None:
        """Return a record; None if it is missing, or damaged, which must not affect other jobs."""
        file = self.folder / _FILES[kind]
        try:
            return msgspec.json.decode(untrusted.read(file, _LONGEST), type=kind)
        except FileNotFoundError:
            return None
        except (untrusted.NotRegular, msgspec.MsgspecError, ValueError, RecursionError) as error:
            logger.error("%s is invalid: %r", file, error)
            return None


#: A log file of this size is renamed to ``log.1``, replacing the one before.
LOG_BYTES: Final = 10 * 1024**2

_TAIL_BYTES: Final = 65536


class FolderLog:
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
        return untrusted.tail(file, _TAIL_BYTES)
    except (FileNotFoundError, untrusted.NotRegular):
        return b""
