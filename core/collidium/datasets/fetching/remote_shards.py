"""Shards on a hub, read in place: by ranges of bytes, and nothing of them kept on this machine."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa

from collidium.errors import UpstreamError

if TYPE_CHECKING:
    from collidium.hub.reader import HubReader

_CONTENT_RANGE: Final = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


@dataclass(frozen=True, slots=True)
class RemoteShard:
    """A parquet file on a hub; ``path`` is its address below the hub's own."""

    hub: HubReader
    path: str

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return unquote(PurePosixPath(self.path).name)

    def open(self) -> pa.PythonFile:
        """The file for a parquet reader, which then asks for what it needs.

        Raises what :class:`HubReader` raises, and UpstreamError for a hub that does not give ranges.
        """
        return pa.PythonFile(_Ranges(self.hub, self.path, self.name), mode="r")


class _Ranges(io.RawIOBase):
    """A file that asks the hub for each piece that is read."""

    def __init__(self, hub: HubReader, path: str, name: str) -> None:
        self._hub = hub
        self._path = path
        self._name = name
        self._at = 0
        self._size = self._ask(0, 1)[1]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        length = min(len(view), self._size - self._at)
        if length <= 0:
            return 0
        view[:length] = self._ask(self._at, length)[0]
        self._at += length
        return length

    def _ask(self, start: int, length: int) -> tuple[bytes, int]:
        """Some bytes of the file, and the size of all of it."""
        wanted = f"{start}-{start + length - 1}"

        def ask() -> tuple[bytes, int]:
            with self._hub.open(self._path, self._name, byte_range=wanted) as response:
                found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
                if found is None or f"{found[1]}-{found[2]}" != wanted:
                    raise UpstreamError(f"{self._hub.endpoint} does not give {self._name} by ranges of bytes")
                return response.read(), int(found[3])

        content, size = self._hub.patiently(ask)
        if len(content) != length:
            raise UpstreamError(f"{self._hub.endpoint} gave another range of {self._name} than was asked for")
        return content, size
