"""One row per hit, particle or track, of tables that have one row per event."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, lengths_of, positions_in_event
from collidium.errors import UnusableDataset

#: The column that identifies a row within its event, where that is its index in the list.
PLACES: Final = {"tracker_hits": "hit_id", "calo_hits": "hit_id", "tracks": "track_id"}


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
        As many rows as all lists have elements. ``event_id`` is repeated; ``hit_id`` and ``track_id`` are the
        index in the list where the release has none. Lists of lists become lists. Where a whole list is null,
        as withheld truth is, the values are null.

    Raises
    ------
    UnusableDataset
        Where the lists of an event differ in length.

    Examples
    --------
    >>> import pyarrow as pa
    >>> flat(pa.table({"event_id": [7], "x": [[0.5, 1.5]]}), "tracker_hits").to_pylist()
    [{'event_id': 7, 'hit_id': 0, 'x': 0.5}, {'event_id': 7, 'hit_id': 1, 'x': 1.5}]
    """
    lists = [field.name for field in rows.schema if _is_list(field.type)]
    lengths = _lengths(rows, lists, table)
    columns: dict[str, Any] = {}
    for name in rows.column_names:
        if name in lists:
            columns[name] = _elements(rows.column(name), lengths)
        else:
            columns[name] = rows.column(name).take(np.repeat(np.arange(len(rows)), lengths))
    place = PLACES.get(table)
    if place is not None and place not in columns:
        columns[place] = pa.array(positions_in_event(lengths))
    order = [name for name in ("event_id", place) if name in columns]
    return pa.table({name: columns[name] for name in [*order, *(n for n in columns if n not in order)]})


def _is_list(kind: pa.DataType) -> bool:
    return is_list(kind) or pa.types.is_fixed_size_list(kind)


def _lengths(rows: pa.Table, lists: list[str], table: str) -> npt.NDArray[np.int64]:
    """Rows of each event, shape (events,): the length that all its lists have which are not null."""
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
    values: Any = pc.list_flatten(column)
    if not column.null_count:
        return values
    absent = np.repeat(np.asarray(pc.is_null(column)), lengths)
    places = np.where(absent, 0, np.cumsum(~absent) - 1)
    return values.take(pa.array(places, mask=absent))
