"""Flavours of jets as stored on the server."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten
from collidium.contracts.task import Tables, UnusableTruth

#: Codes of the dataset.
BOTTOM: Final = 5
CHARM: Final = 4
LIGHT: Final = 0

_COLUMNS: Final = ("jet_id", "flavour")


def prepare(tables: Tables) -> dict[str, pa.Table]:
    """One row per jet, rising by ``event_id`` and ``jet_id``, with its ``flavour``.

    Raises :class:`~collidium.contracts.task.UnusableTruth` if a column is missing or has nulls, a flavour
    is not 5, 4 or 0, or an event or a jet appears twice.
    """
    table = tables["jets"]
    missing = [name for name in _COLUMNS if name not in table.column_names]
    if missing:
        raise UnusableTruth(f"table jets lacks {', '.join(missing)}")
    for name in _COLUMNS:
        if table.column(name).null_count:
            raise UnusableTruth(f"table jets, column {name}: has nulls")
    if np.any(np.diff(np.asarray(table.column("event_id")).astype(np.int64)) <= 0):
        raise UnusableTruth("table jets: event ids must increase, without repetitions")
    try:
        flat = flatten(table, _COLUMNS)
    except ValueError as error:
        raise UnusableTruth(f"table jets: {error}") from error
    events = np.asarray(flat.column("event_id")).astype(np.uint32)
    jets, flavour = (_whole(flat, name) for name in _COLUMNS)
    order = np.lexsort((jets, events))
    events, jets, flavour = events[order], jets[order], flavour[order]
    again = np.flatnonzero((np.diff(events) == 0) & (np.diff(jets) == 0))
    if len(again):
        raise UnusableTruth(f"table jets: jet {jets[again[0]]} appears twice in event {events[again[0]]}")
    columns = {"event_id": events, "jet_id": jets.astype(np.uint16), "flavour": flavour.astype(np.uint8)}
    return {"jets": pa.table(columns)}


def _whole(flat: pa.Table, name: str) -> npt.NDArray[np.int64]:
    column = flat.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise UnusableTruth(f"table jets, column {name}: must be integers, without nulls")
    values = np.asarray(column)
    allowed = (
        np.isin(values, (BOTTOM, CHARM, LIGHT)) if name == "flavour" else (values >= 0) & (values < 2**16)
    )
    if not allowed.all():
        value = values[int(np.flatnonzero(~allowed)[0])]
        wanted = "5, 4 or 0" if name == "flavour" else "from 0 to 65535"
        raise UnusableTruth(f"table jets, column {name}: {value} is not {wanted}")
    return values.astype(np.int64)
