"""Dataset tables hold one row per event and lists in it; most code wants one row per hit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def list_lengths(table: pa.Table, column: str) -> npt.NDArray[np.int64]:
    """Length of each event's list in ``column``, shape (events,); a null list has length 0."""
    lengths = pc.list_value_length(table.column(column)).fill_null(0)
    return np.asarray(lengths, dtype=np.int64)


def flatten(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """One row per list element: ``event_id`` repeated, then ``columns``, in the order of the events.

    All ``columns`` must be list columns with equal lengths in each event; raises ValueError otherwise.
    """
    lengths = list_lengths(table, columns[0])
    for name in columns[1:]:
        if not np.array_equal(list_lengths(table, name), lengths):
            raise ValueError(f"columns {columns[0]} and {name} differ in length within an event")
    events = np.repeat(np.asarray(table.column("event_id")), lengths)
    flat = {name: pc.list_flatten(table.column(name)) for name in columns}
    return pa.table({"event_id": events, **flat})


def positions_in_event(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """0, 1, 2, … within each event, for rows that :func:`flatten` made; shape (sum of lengths,)."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(starts, lengths)
