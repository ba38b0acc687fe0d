"""Spots of energy add up in cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import nested
from collidium.datasets.schemas import ECAL_CODE, HCAL_CODE, SAMPLING, SCHEMAS
from collidium_plugins.acts_pipeline.calorimeter.geometry import (
    ECAL,
    ECAL_LENGTH,
    ECAL_RADIUS,
    HCAL,
    HCAL_LENGTH,
    HCAL_RADIUS,
    Floats,
)

Integers = npt.NDArray[np.int64]
_Number = TypeVar("_Number", np.int64, np.float64)

#: Bits of a cell's number for each of its two places in a layer, which may be negative.
_BITS: Final = 20
_MIDDLE: Final = 1 << (_BITS - 1)


@dataclass(frozen=True, slots=True, eq=False)
class CaloHits:
    """Cells of one event with energy, columns as in the hosted table; energies are those in active layers."""

    detector: npt.NDArray[np.uint8]
    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.float32]
    z: npt.NDArray[np.float32]
    #: GeV.
    total_energy: npt.NDArray[np.float32]
    #: How many contributions each cell has; they follow one another in the order of the cells.
    contributions: Integers
    contrib_particle_ids: npt.NDArray[np.uint64]
    contrib_energies: npt.NDArray[np.float32]
    contrib_times: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.detector)


def cells(
    place: Floats,
    side: Integers,
    in_hcal: npt.NDArray[np.bool_],
    energy: Floats,
    time: Floats,
    particle_id: npt.NDArray[np.uint64],
) -> CaloHits:
    """Cells of spots at ``place`` (mm, shape (spots, 3)), in GeV and ns; ``particle_id`` rises."""
    layer, first, second, centre = _cell(place, side, in_hcal)
    detector = np.where(in_hcal, HCAL_CODE, ECAL_CODE) + side + 1
    number = (detector << 8 | layer) << 2 * _BITS | (first + _MIDDLE) << _BITS | (second + _MIDDLE)
    order = np.argsort(number, kind="stable")  # particles rise before, and so they do within each cell
    number, owner, energy, time = number[order], particle_id[order], energy[order], time[order]
    energy = energy / np.array(SAMPLING)[detector[order] - ECAL_CODE]

    begins_cell = np.ones(len(number), bool)
    begins_cell[1:] = number[1:] != number[:-1]
    begins = begins_cell.copy()
    begins[1:] |= owner[1:] != owner[:-1]
    at_cell, at = np.flatnonzero(begins_cell), np.flatnonzero(begins)
    chosen = order[at_cell]
    return CaloHits(
        detector=detector[chosen].astype(np.uint8),
        x=centre[chosen, 0].astype(np.float32),
        y=centre[chosen, 1].astype(np.float32),
        z=centre[chosen, 2].astype(np.float32),
        total_energy=_sums(energy, at_cell).astype(np.float32),
        contributions=_sums(begins.astype(np.int64), at_cell),
        contrib_particle_ids=owner[at],
        contrib_energies=_sums(energy, at).astype(np.float32),
        contrib_times=_firsts(time, at).astype(np.float32),
    )


def _sums(values: npt.NDArray[_Number], starts: Integers) -> npt.NDArray[_Number]:
    return np.add.reduceat(values, starts) if len(starts) else values[:0]


def _firsts(values: Floats, starts: Integers) -> Floats:
    return np.minimum.reduceat(values, starts) if len(starts) else values[:0]


def _cell(
    place: Floats, side: Integers, in_hcal: npt.NDArray[np.bool_]
) -> tuple[Integers, Integers, Integers, Floats]:
    """Layer and two places of the cell that each spot lies in, and the cell's centre."""
    x, y, z = place.T
    radius = np.hypot(x, y)
    barrel = side == 0
    face = np.where(
        barrel,
        np.where(in_hcal, HCAL_RADIUS, ECAL_RADIUS),
        np.where(in_hcal, HCAL_LENGTH, ECAL_LENGTH),
    )
    layers, thick, size = (
        np.where(in_hcal, getattr(HCAL, name), getattr(ECAL, name)) for name in ("layers", "layer", "cell")
    )
    depth = np.where(barrel, radius, np.abs(z)) - face
    layer = np.clip(depth // thick, 0, layers - 1).astype(np.int64)
    middle = face + (layer + 0.5) * thick

    around = 2 * np.pi / np.round(2 * np.pi * middle / size)  # barrel cells divide the circle
    first = np.floor(np.where(barrel, np.arctan2(y, x) / around, x / size)).astype(np.int64)
    second = np.floor(np.where(barrel, z, y) / size).astype(np.int64)
    angle, along = (first + 0.5) * around, (second + 0.5) * size
    centre = np.where(
        barrel[:, None],
        np.stack([middle * np.cos(angle), middle * np.sin(angle), along], axis=1),
        np.stack([(first + 0.5) * size, along, side * middle], axis=1),
    )
    return layer, first, second, centre


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
            each = nested(contributions, _joined(arrays))
            columns.append(nested([len(event) for event in events], each).cast(field.type))
        else:
            columns.append(nested([len(array) for array in arrays], _joined(arrays)).cast(field.type))
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def cells_of_particles(table: pa.Table, row: int, particles: int) -> npt.NDArray[np.uint16]:
    """How many cells of event ``row`` each of the particles 1, 2, … contributes to; shape (particles,)."""
    ids = pc.list_flatten(pc.list_flatten(table.column("contrib_particle_ids").slice(row, 1)))
    counts = np.bincount(np.asarray(ids).astype(np.int64), minlength=particles + 1)
    return counts[1:].astype(np.uint16)


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> pa.Array[Any]:
    return pa.array(np.concatenate(arrays)) if arrays else pa.array([])
