"""Files to upload: read in chunks with progress, or written from predictions in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from collidium.errors import InvalidInput
from collidium.runtime.progress import Progress

if TYPE_CHECKING:
    from os import PathLike

    from collidium.client.predictions import Columns

    Predictions = str | PathLike[str] | Columns

CHUNK_BYTES = 1024**2


@dataclass(slots=True)
class FileUpload:
    """An open file that is being sent. Setting ``abandoned`` ends the upload at the next chunk."""

    file: BufferedReader
    size: int
    progress: Progress | None = None
    abandoned: bool = False
    #: First byte to send: the server has those before it.
    offset: int = 0

    @classmethod
    def open(cls, path: Path, progress: Progress | None) -> FileUpload:
        """Open the file; raises OSError if it cannot be read."""
        file = path.open("rb")
        return cls(file, path.stat().st_size, progress)

    def chunks(self) -> Iterator[bytes]:
        """Yield the file's bytes from the offset on, as many as were announced.

        Raises InvalidInput if the file has become shorter, and UploadAbandoned.
        """
        sent = self.offset
        self.file.seek(sent)
        self._report(sent)
        while sent < self.size:
            chunk = self.file.read(min(CHUNK_BYTES, self.size - sent))
            if self.abandoned:
                raise UploadAbandoned
            if not chunk:
                raise InvalidInput(f"{self.file.name} became shorter while it was sent; send it again")
            yield chunk
            sent += len(chunk)
            self._report(sent)

    def _report(self, sent: int) -> None:
        if self.progress is not None:
            self.progress(sent, self.size)


class UploadAbandoned(Exception):
    """The caller no longer waits for this upload."""


@contextmanager
def predictions_file(predictions: Predictions) -> Iterator[Path]:
    """Return the path of the file, or of a temporary file with the predictions in memory.

    Raises TypeError and ValueError as :func:`collidium.client.write_predictions`. Blocks while it writes.
    """
    if isinstance(predictions, str | os.PathLike):
        yield Path(predictions)
        return
    from collidium.client.predictions import write_predictions  # needs pyarrow, which files do not

    with tempfile.TemporaryDirectory(prefix="collidium-") as directory:
        path = Path(directory) / "predictions.parquet"
        write_predictions(predictions, path)
        yield path
