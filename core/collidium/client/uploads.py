"""What is uploaded: a file in chunks, with progress; or predictions in memory, written to a file first."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from collidium.errors import InvalidInput

if TYPE_CHECKING:
    from os import PathLike

    from collidium.client.predictions import Columns

    Predictions = str | PathLike[str] | Columns

#: Called with the bytes sent so far and those in all.
Progress = Callable[[int, int], None]

CHUNK_BYTES = 1024**2


@dataclass(slots=True)
class Upload:
    """An open file that is being sent. ``abandoned`` ends it at the next chunk."""

    file: BufferedReader
    size: int
    progress: Progress | None = None
    abandoned: bool = False
    #: Where it begins: what comes before is on the server.
    offset: int = 0

    @classmethod
    def open(cls, path: Path, progress: Progress | None) -> Upload:
        """Open the file to send; raises OSError when it cannot be read."""
        file = path.open("rb")
        return cls(file, path.stat().st_size, progress)

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes from the offset on, as many as were announced and no more.

        Raises InvalidInput when the file has become shorter, and UploadAbandoned.
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
            # When control comes back here, the chunk has been sent.
            yield chunk
            sent += len(chunk)
            self._report(sent)

    def _report(self, sent: int) -> None:
        if self.progress is not None:
            self.progress(sent, self.size)


class UploadAbandoned(Exception):
    """The caller does not wait for this upload any more."""


@contextmanager
def predictions_file(predictions: Predictions) -> Iterator[Path]:
    """The file as it is, or a temporary one of predictions that are in memory.

    Raises TypeError and ValueError as :func:`collidium.client.write_predictions` does. It may write for a
    while: not for an event loop.
    """
    if isinstance(predictions, str | os.PathLike):
        yield Path(predictions)
        return
    # It needs pyarrow, which callers that send a file do not.
    from collidium.client.predictions import write_predictions

    with tempfile.TemporaryDirectory(prefix="collidium-") as directory:
        path = Path(directory) / "predictions.parquet"
        write_predictions(predictions, path)
        yield path
