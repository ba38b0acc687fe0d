"""The log of a job, of bounded size: pipelines may write without end."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

#: A file of this size is put aside for a new one, and what was put aside before is deleted.
LOG_BYTES: Final = 10 * 1024**2

_TAIL_BYTES: Final = 65536


class Log:
    """The files ``log`` and ``log.1`` in a folder."""

    def __init__(self, folder: Path) -> None:
        self._file, self._older = _files(folder)
        self._open: IO[bytes] | None = None
        self._room = 0

    def write(self, piece: bytes) -> None:
        """Write it if the disk has room: the pipeline goes on all the same."""
        with suppress(OSError):
            if self._open is None or self._room <= 0:
                self._begin()
            if self._open is not None:
                self._open.write(piece)
                self._room -= len(piece)

    def copy(self, source: IO[bytes]) -> None:
        """Write whatever comes from a pipe, until its other end is closed."""
        while piece := os.read(source.fileno(), 65536):
            self.write(piece)

    def _begin(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
            self._file.replace(self._older)
        self._open = self._file.open("wb", buffering=0)
        self._room = LOG_BYTES


def tail(folder: Path) -> bytes:
    """The end of what was written."""
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
