"""Brings events of several tables into the order of their ids, by way of the disk: memory holds some of them.

What is dealt out goes to files, each for a range of ids; every file is then read once and sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from collidium.contracts.task import EventRange

#: Bytes of all tables that are sorted at once, if the ranges are not too many for that.
RANGE_BYTES: Final = 128 * 1024**2
#: Each has a file open for every table.
MAX_RANGES: Final = 64


class Shuffle:
    """Takes events in any order and gives them back in that of their ids; a context manager."""

    def __init__(self, directory: Path, events: EventRange, size_bytes: float) -> None:
        """``events`` are all that will be dealt out, of about ``size_bytes`` in all tables together."""
        self._directory = directory
        self._start = events.start
        self._ranges = int(np.clip(ceil(size_bytes / RANGE_BYTES), 1, min(MAX_RANGES, len(events))))
        self._step = ceil(len(events) / self._ranges)
        self._files = ExitStack()
        self._writers: dict[tuple[int, str], ipc.RecordBatchStreamWriter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def deal(self, tables: Mapping[str, pa.Table]) -> None:
        """Add events: the same ones, in the same order, of each table."""
        ids = np.asarray(next(iter(tables.values())).column("event_id")).astype(np.int64)
        ranges = (ids - self._start) // self._step
        for number in np.unique(ranges).tolist():
            rows = np.flatnonzero(ranges == number)
            for name, table in tables.items():
                self._writer(number, name, table.schema).write_table(table.take(rows))

    def gathered(self) -> Iterator[dict[str, pa.Table]]:
        """All events of all tables, some at a time, in the order of their ids; once."""
        self._files.close()
        names = list(dict.fromkeys(name for _, name in self._writers))
        for number in range(self._ranges):
            if any((number, name) in self._writers for name in names):
                yield {name: self._sorted(self._path(number, name)) for name in names}

    def _sorted(self, path: Path) -> pa.Table:
        with pa.OSFile(str(path), "rb") as file, ipc.open_stream(file) as stream:
            table = stream.read_all()
        path.unlink()
        return table.sort_by("event_id")

    def _writer(self, number: int, name: str, schema: pa.Schema) -> ipc.RecordBatchStreamWriter:
        if (number, name) not in self._writers:
            writer = ipc.new_stream(str(self._path(number, name)), schema)
            self._writers[number, name] = self._files.enter_context(writer)
        return self._writers[number, name]

    def _path(self, number: int, name: str) -> Path:
        return self._directory / f"{number:03}-{name}.arrow"
