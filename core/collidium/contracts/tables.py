"""Conversion between dataset tables, one row per event with list columns, and tables with one row per hit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists of any length."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def lengths_of(column: Any) -> npt.NDArray[np.int64]:
    """Return the length of each list of an array; 0 for a null."""
    return np.asarray(pc.list_value_length(column).fill_null(0), dtype=np.int64)


def list_lengths(table: pa.Table, column: str) -> npt.NDArray[np.int64]:
    """Return the length of each event's list.

    Parameters
    ----------
    table : pyarrow.Table
        One row per event.
    column : str
        A list column of the table.

    Returns
    -------
    numpy.ndarray of int64, shape (events,)
        The lengths; 0 for a null list.

    Examples
    --------
    >>> list_lengths(pa.table({"event_id": [7, 8], "x": [[0.5, 1.5], []]}), "x").tolist()
    [2, 0]
    """
    return lengths_of(table.column(column))


def flatten(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return one row per list element, in the order of the events.

    Parameters
    ----------
    table : pyarrow.Table
        One row per event, with a column ``event_id``.
    columns : sequence of str
        List columns with equal lengths in each event.

    Returns
    -------
    pyarrow.Table, shape (sum of the lengths,)
        ``event_id``, repeated, and ``columns``.

    Raises
    ------
    ValueError
        If the lengths of two columns differ within an event.

    Examples
    --------
    >>> flatten(pa.table({"event_id": [7, 8], "x": [[0.5, 1.5], [2.5]]}), ["x"]).to_pydict()
    {'event_id': [7, 7, 8], 'x': [0.5, 1.5, 2.5]}
    """
    lengths = list_lengths(table, columns[0])
    for name in columns[1:]:
        if not np.array_equal(list_lengths(table, name), lengths):
            raise ValueError(f"columns {columns[0]} and {name} differ in length within an event")
    events = np.repeat(np.asarray(table.column("event_id")), lengths)
    flat = {name: pc.list_flatten(table.column(name)) for name in columns}
    return pa.table({"event_id": events, **flat})


def nested(lengths: npt.ArrayLike, values: Any) -> pa.Array[Any]:
    """Group values into lists, as the columns of dataset tables have them.

    Parameters
    ----------
    lengths : array_like of int, shape (lists,)
        The length of each list.
    values : pyarrow.Array or numpy.ndarray, shape (sum of the lengths,)
        The elements of all lists.

    Returns
    -------
    pyarrow.ListArray, shape (lists,)
        The lists.

    Examples
    --------
    >>> nested([2, 0, 1], np.array([1, 2, 3])).to_pylist()
    [[1, 2], [], [3]]
    """
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    elements = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements)


def positions_in_event(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number the rows of :func:`flatten` within each event.

    Parameters
    ----------
    lengths : numpy.ndarray of int64, shape (events,)
        The number of rows of each event.

    Returns
    -------
    numpy.ndarray of int64, shape (sum of the lengths,)
        0, 1, 2, … for the rows of each event.

    Examples
    --------
    >>> positions_in_event(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(starts, lengths)
