"""A dataset in a local directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.reading.shards import BATCH_BYTES, EventTable
from collidium.errors import UnusableDataset

#: Maximum number of events in one block, however small they are.
MAX_BLOCK_EVENTS: Final = 4096


class Dataset:
    """Tables of one config below a directory, in any layout of ``collidium.datasets.layout``.

    Parameters
    ----------
    directory
        The dataset's directory.
    config
        Name of a config; may be left out where there is only one.

    Raises
    ------
    UnusableDataset
        Without a directory.
    """

    def __init__(self, directory: Path, config: str | None = None) -> None:
        if not directory.is_dir():
            raise UnusableDataset(f"there is no directory {directory}")
        self.directory = directory
        self.config = config
        self._paths = sorted(parquet_files(directory))

    def configs(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the tables of each config."""
        return layout.configs(self._paths)

    def table(self, name: str) -> EventTable:
        """Open a table. Raises UnusableDataset where there is none, or its files cannot be read."""
        paths = layout.shards(self._paths, name, self.config)
        return EventTable(name, [self.directory / path for path in paths])

    def read(
        self, tables: Sequence[str], events: EventRange, *, block_bytes: int = BATCH_BYTES
    ) -> Iterator[tuple[EventRange, Mapping[str, pa.Table]]]:
        """Read tables by blocks of events, in bounded memory.

        Parameters
        ----------
        tables
            Names of tables.
        events
            The range to read.
        block_bytes
            Uncompressed size of a block of all tables, in bytes.

        Yields
        ------
        EventRange, Mapping of str to pyarrow.Table
            The events of a block, and their rows by table, with canonical column names.

        Raises
        ------
        UnusableDataset
            Where a table lacks an event of the range.
        """
        opened = [self.table(name) for name in tables]
        for table in opened:
            refuse_missing(table, events)
        size = sum(table.bytes_per_event for table in opened)
        step = int(np.clip(block_bytes / max(size, 1), 1, MAX_BLOCK_EVENTS))
        blocks = [
            EventRange(start, min(start + step, events.stop))
            for start in range(events.start, events.stop, step)
        ]
        streams = [table.read(blocks) for table in opened]
        for block, *tables_of_block in zip(blocks, *streams, strict=True):
            yield block, dict(zip(tables, tables_of_block, strict=True))


def parquet_files(directory: Path) -> Iterator[str]:
    """The parquet files below a directory, relative to it; hidden files are work in progress."""
    for path in directory.rglob("*.parquet"):
        relative = path.relative_to(directory)
        if not any(part.startswith(".") for part in relative.parts) and path.is_file():
            yield relative.as_posix()


def refuse_missing(table: EventTable, events: EventRange) -> None:
    """Raise UnusableDataset, with count and examples, where the table lacks events of the range."""
    missing = table.missing(events)
    if len(missing):
        examples = ", ".join(map(str, missing[:5].tolist()))
        there = f"{table.event_ids[0]} to {table.event_ids[-1]}" if len(table.event_ids) else "none"
        detail = (
            f"table {table.name} lacks {len(missing)} of the {len(events)} events {events}, "
            f"for example {examples} (events there: {there})"
        )
        none = len(missing) == len(events)
        raise UnusableDataset(detail, errors=[{"field": "events", "detail": detail}] if none else ())
