"""What callers may send as predictions: a file, or what :func:`write_predictions` makes one of."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from collidium.client.predictions import Columns

    Predictions = str | PathLike[str] | Columns


@contextmanager
def predictions_file(predictions: Predictions) -> Iterator[Path]:
    """The file as it is, or a temporary one of predictions that are in memory.

    Raises TypeError and ValueError as :func:`collidium.client.write_predictions` does. It may write for a
    while: not for an event loop.
    """
    if isinstance(predictions, str | os.PathLike):
        yield Path(predictions)
        return
    # It needs pyarrow, which whoever sends a file does not.
    from collidium.client.predictions import write_predictions

    with tempfile.TemporaryDirectory(prefix="collidium-") as directory:
        path = Path(directory) / "predictions.parquet"
        write_predictions(predictions, path)
        yield path
