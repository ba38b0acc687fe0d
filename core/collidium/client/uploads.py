"""A file as the body of a request: in pieces, with its length told before, and progress told after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from collidium.errors import InvalidInput

#: Called with the bytes sent so far and those in all.
Progress = Callable[[int, int], None]

PIECE_BYTES = 1024**2


@dataclass(slots=True)
class Upload:
    """An open file on its way. ``abandoned`` ends it at the next piece."""

    file: BinaryIO
    size: int
    progress: Progress | None = None
    abandoned: bool = False

    @classmethod
    def open(cls, path: Path, progress: Progress | None) -> Upload:
        """Open the file to send; raises OSError when it cannot be read."""
        file = path.open("rb")
        return cls(file, path.stat().st_size, progress)

    def pieces(self) -> Iterator[bytes]:
        """The file's bytes, as many as were announced and no more.

        Raises InvalidInput when the file has become shorter, and UploadAbandoned.
        """
        sent = 0
        self._tell(sent)
        while sent < self.size:
            piece = self.file.read(min(PIECE_BYTES, self.size - sent))
            if self.abandoned:
                raise UploadAbandoned
            if not piece:
                raise InvalidInput(f"{self.file.name} became shorter while it was sent; send it again")
            # When control comes back here, the piece has left.
            yield piece
            sent += len(piece)
            self._tell(sent)

    def _tell(self, sent: int) -> None:
        if self.progress is not None:
            self.progress(sent, self.size)


class UploadAbandoned(Exception):
    """Nobody waits for this upload any more."""
