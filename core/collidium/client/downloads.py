"""Files to download: received in parts, which later calls and other processes resume."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path, PurePosixPath
from typing import Final

from collidium.errors import Conflict, UnusableDataset, UpstreamError
from collidium.files.durable import sha256_of
from collidium.files.held import lock
from collidium.runtime.progress import Progress

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class DownloadAbandoned(Exception):
    """The caller no longer waits for this download."""


@dataclass(slots=True)
class Download:
    """A file to receive. Setting ``abandoned`` ends the download at the next chunk."""

    path: Path
    sha256: str
    size: int
    progress: Progress | None = None
    abandoned: bool = False

    @classmethod
    def below(
        cls, directory: Path, path: str, sha256: str, size: int, progress: Progress | None = None
    ) -> Download:
        """Place a file of the server below a directory. Raises UpstreamError if its path leads elsewhere."""
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise UpstreamError(f"the server names a file {path[:100]!r}, which is no path below a directory")
        if not _SHA256.fullmatch(sha256):
            raise UpstreamError(f"the server names a file with the SHA-256 {sha256[:100]!r}")
        return cls(directory.joinpath(*parts), sha256, size, progress)

    @property
    def exists(self) -> bool:
        """Whether the file is there, with the right content."""
        path = self.path
        return path.is_file() and path.stat().st_size == self.size and sha256_of(path) == self.sha256

    @contextmanager
    def part(self) -> Iterator[DownloadPart]:
        """Open what was received so far. Raises Conflict while another process receives the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        path = self.path.with_name(f".{self.path.name}.{self.sha256[:16]}.part")
        with path.open("a+b") as file:
            # Of a file without this name, another process has just received the last byte.
            if not lock(file.fileno()) or not _has_name(file, path):
                raise Conflict(f"another process downloads {self.path}")
            yield DownloadPart(self, file)


def _has_name(file: BufferedRandom, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


class DownloadPart:
    """What was received of a file."""

    def __init__(self, download: Download, file: BufferedRandom) -> None:
        self._download = download
        self._file = file
        file.seek(0)
        self._digest = hashlib.file_digest(file, "sha256")
        self.received = file.tell()
        self._was_damaged = False

    @property
    def is_complete(self) -> bool:
        return self.received >= self._download.size

    @property
    def headers(self) -> dict[str, str]:
        """The headers that ask for what is missing, and for all of it if the server has another file."""
        if not self.received:
            return {}
        return {"Range": f"bytes={self.received}-", "If-Range": f'"{self._download.sha256}"'}

    def begin(self, content_range: str | None) -> None:
        """Start over unless the response begins where the part ends."""
        if not (content_range or "").startswith(f"bytes {self.received}-"):
            self._truncate()

    def add(self, chunk: bytes) -> None:
        """Append. Raises UpstreamError beyond the size of the file, and DownloadAbandoned."""
        download = self._download
        if download.abandoned:
            raise DownloadAbandoned
        if self.received + len(chunk) > download.size:
            self._truncate()
            raise UpstreamError(f"the server sent more than {download.size:,} bytes of {download.path.name}")
        self._file.write(chunk)
        self._digest.update(chunk)
        self.received += len(chunk)
        if download.progress is not None:
            download.progress(self.received, download.size)

    def require_complete(self) -> None:
        """Raise UpstreamError after a response with less than was announced, such as a proxy's own page."""
        if not self.is_complete:
            raise UpstreamError(f"the server sent {self.received:,} bytes of {self._download.size:,}")

    def keep(self) -> bool:
        """Give the complete file its name; False if its content is wrong and it must be received again.

        Raises UnusableDataset if that happens twice.
        """
        download = self._download
        if self._digest.hexdigest() != download.sha256:
            if self._was_damaged:
                raise UnusableDataset(
                    f"{download.path.name} was downloaded twice and does not match the server's hash"
                )
            self._was_damaged = True
            self._truncate()
            return False
        self._file.flush()
        Path(self._file.name).replace(download.path)
        return True

    def _truncate(self) -> None:
        self._file.truncate(0)
        self._digest = hashlib.sha256()
        self.received = 0
