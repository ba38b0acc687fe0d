"""Cells of events as the hosted table, and how many of them each particle contributes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.datasets.schemas import SCHEMAS
from collidium_plugins.acts_pipeline.calorimeter.cells import CaloHits

_SCHEMA = SCHEMAS["calo_hits"]


def to_table(event_ids: Sequence[int], events: Sequence[CaloHits]) -> pa.Table:
    """The hosted table ``calo_hits``, one row per event."""
    columns: list[pa.Array[Any]] = [pa.array(event_ids, pa.uint32())]
    for field in list(_SCHEMA)[1:]:
        arrays = [getattr(event, field.name) for event in events]
        if field.name.startswith("contrib_"):
            contributions = np.concatenate(
                [np.empty(0, np.int64), *(event.contributions for event in events)]
            )
            each = _lists(contributions, _joined(arrays))
            columns.append(_lists([len(event) for event in events], each).cast(field.type))
        else:
            columns.append(_lists([len(array) for array in arrays], _joined(arrays)).cast(field.type))
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def cells_of_particles(table: pa.Table, row: int, particles: int) -> npt.NDArray[np.uint16]:
    """How many cells of event ``row`` each of the particles 1, 2, … contributes to; shape (particles,)."""
    ids = pc.list_flatten(pc.list_flatten(table.column("contrib_particle_ids").slice(row, 1)))
    counts = np.bincount(np.asarray(ids).astype(np.int64), minlength=particles + 1)
    return counts[1:].astype(np.uint16)


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> pa.Array[Any]:
    return pa.array(np.concatenate(arrays)) if arrays else pa.array([])


def _lists(lengths: Sequence[int] | npt.NDArray[np.int64], values: pa.Array[Any]) -> pa.Array[Any]:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
