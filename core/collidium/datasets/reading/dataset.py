"""Datasets in a local directory, and the conversion of tables to one row per hit, particle or track."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, lengths_of, positions_in_event
from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.reading.shards import BATCH_BYTES, EventTable
from collidium.errors import UnusableDataset

#: Maximum number of events in a block.
MAX_BLOCK_EVENTS: Final = 4096
#: Table -> the column with a row's index within its event.
POSITION_COLUMNS: Final = {"tracker_hits": "hit_id", "calo_hits": "hit_id", "tracks": "track_id"}


class Dataset:
    """A dataset in a local directory, in any layout of ``collidium.datasets.layout``.

    Parameters
    ----------
    directory
        The dataset's directory.
    config
        Name of a config; optional if the dataset has only one.

    Raises
    ------
    UnusableDataset
        If the directory does not exist.
    """

    def __init__(self, directory: Path, config: str | None = None) -> None:
        if not directory.is_dir():
            raise UnusableDataset(f"there is no directory {directory}")
        self.directory = directory
        self.config = config
        self._paths = sorted(parquet_files(directory))

    def configs(self) -> dict[str, tuple[str, ...]]:
        """Return the configs and their tables.

        Returns
        -------
        dict of str to tuple of str
            Names of tables by config.
        """
        return layout.configs(self._paths)

    def table(self, name: str) -> EventTable:
        """Open a table.

        Parameters
        ----------
        name : str

        Returns
        -------
        EventTable

        Raises
        ------
        UnusableDataset
            If there is no such table, or its files cannot be read.
        """
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
            Approximate uncompressed size of a block, all tables together, in bytes.

        Yields
        ------
        EventRange, Mapping of str to pyarrow.Table
            The events of a block, and their rows by table, with canonical column names.

        Raises
        ------
        UnusableDataset
            If a table lacks an event of the range.
        """
        opened = [self.table(name) for name in tables]
        for table in opened:
            table.refuse_missing(events)
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
    """The relative paths of the parquet files below a directory; hidden ones are unfinished."""
    for path in directory.rglob("*.parquet"):
        relative = path.relative_to(directory)
        if not any(part.startswith(".") for part in relative.parts) and path.is_file():
            yield relative.as_posix()


def flat(rows: pa.Table, table: str) -> pa.Table:
    """Return one row per list element instead of one per event.

    Parameters
    ----------
    rows
        Rows of a dataset table, as :func:`~collidium.datasets.load` returns them.
    table
        The table's name.

    Returns
    -------
    pyarrow.Table
        One row per list element, with repeated ``event_id``. Missing ``hit_id`` and ``track_id`` are the
        index in the list. Lists of lists become lists. Elements of a null list, such as withheld truth, are
        null.

    Raises
    ------
    UnusableDataset
        If the lists of an event differ in length.

    Examples
    --------
    >>> import pyarrow as pa
    >>> flat(pa.table({"event_id": [7], "x": [[0.5, 1.5]]}), "tracker_hits").to_pylist()
    [{'event_id': 7, 'hit_id': 0, 'x': 0.5}, {'event_id': 7, 'hit_id': 1, 'x': 1.5}]
    """
    lists = [field.name for field in rows.schema if is_list(field.type)]
    lengths = _lengths(rows, lists, table)
    columns: dict[str, Any] = {}
    for name in rows.column_names:
        if name in lists:
            columns[name] = _elements(rows.column(name), lengths)
        else:
            columns[name] = rows.column(name).take(np.repeat(np.arange(len(rows)), lengths))
    position = POSITION_COLUMNS.get(table)
    if position is not None and position not in columns:
        columns[position] = pa.array(positions_in_event(lengths))
    order = [name for name in ("event_id", position) if name in columns]
    return pa.table({name: columns[name] for name in [*order, *(n for n in columns if n not in order)]})


def _lengths(rows: pa.Table, lists: list[str], table: str) -> npt.NDArray[np.int64]:
    """The common length of each event's lists that are not null, shape (events,)."""
    lengths = np.zeros(len(rows), np.int64)
    known = np.zeros(len(rows), bool)
    for name in lists:
        column = rows.column(name)
        there = np.asarray(pc.is_valid(column))
        own = lengths_of(column)
        unequal = np.flatnonzero(known & there & (own != lengths))
        if len(unequal):
            event = rows.column("event_id")[int(unequal[0])].as_py()
            raise UnusableDataset(
                f"table {table}: column {name} has {own[unequal[0]]} entries in event {event}, "
                f"others have {lengths[unequal[0]]}"
            )
        lengths = np.where(there, own, lengths)
        known |= there
    return lengths


def _elements(column: pa.ChunkedArray[Any], lengths: npt.NDArray[np.int64]) -> Any:
    """Flatten a column of lists; a null list becomes nulls."""
    values: Any = pc.list_flatten(column)
    if not column.null_count:
        return values
    absent = np.repeat(np.asarray(pc.is_null(column)), lengths)
    places = np.where(absent, 0, np.cumsum(~absent) - 1)
    return values.take(pa.array(places, mask=absent))
