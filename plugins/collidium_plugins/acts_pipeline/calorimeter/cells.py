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
from collidium.datasets.schemas import SCHEMAS
from collidium.physics.constants import HCAL_CODE
from collidium_plugins.acts_pipeline.calorimeter.geometry import (
    NORMALS,
    REGIONS,
    SECTOR_GAP,
    SIDES,
    Floats,
    Integers,
    sectors,
)

_Number = TypeVar("_Number", np.int64, np.float64)

#: Bits of a cell's number: for each of its two indices, which may be negative, its sector and its layer.
_BITS: Final = 12
_SECTOR_BITS: Final = 4
_LAYER_BITS: Final = 6
#: Bits left for the id of a particle.
_PARTICLE_BITS: Final = 24
_MIDDLE: Final = 1 << (_BITS - 1)

#: As the production of the hosted datasets has them: time since light from the origin, ns, which is counted
#: 0.1 ns early with a speed of 300 mm/ns; and minimum energies of cells of either calorimeter, GeV.
WINDOW: Final = (-1.0, 10.0)
_SPEED: Final = 300.0
_EARLY: Final = 0.1
#: Of the hadronic and of the electromagnetic calorimeter.
THRESHOLDS: Final = (250e-6, 50e-6)


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
    place: Floats, region: Integers, energy: Floats, time: Floats, particle_id: npt.NDArray[np.uint64]
) -> CaloHits:
    """Cells of spots at ``place`` (mm, shape (3, spots)), in GeV and ns.

    Left out are spots outside of the sensors and of the time window, and cells below the threshold.
    """
    since = time - (np.sqrt((place**2).sum(axis=0)) / _SPEED - _EARLY)
    number = np.where((since >= WINDOW[0]) & (since <= WINDOW[1]), _numbers(place, region), -1)
    spot = np.flatnonzero(number >= 0)
    both = (number[spot] << _PARTICLE_BITS) | particle_id[spot].astype(np.int64)
    spot = spot[np.argsort(both, kind="stable")]
    number, owner, energy, time = number[spot], particle_id[spot], energy[spot], time[spot]

    begins_cell = np.ones(len(number), bool)
    begins_cell[1:] = number[1:] != number[:-1]
    begins = begins_cell.copy()
    begins[1:] |= owner[1:] != owner[:-1]
    at_cell, at = np.flatnonzero(begins_cell), np.flatnonzero(begins)
    total = _sums(energy, at_cell)
    contributions = _sums(begins.astype(np.int64), at_cell)
    detector, x, y, z = _centres(number[at_cell])
    passes = total >= np.where(detector >= HCAL_CODE, *THRESHOLDS)
    kept = np.repeat(passes, contributions)
    each = _sums(energy, at)[kept]
    return CaloHits(
        detector=detector[passes].astype(np.uint8),
        x=x[passes].astype(np.float32),
        y=y[passes].astype(np.float32),
        z=z[passes].astype(np.float32),
        total_energy=total[passes].astype(np.float32),
        contributions=contributions[passes],
        contrib_particle_ids=owner[at][kept],
        contrib_energies=each.astype(np.float32),
        contrib_times=(_sums(energy * time, at)[kept] / each).astype(np.float32),
    )


def _sums(values: npt.NDArray[_Number], starts: Integers) -> npt.NDArray[_Number]:
    return np.add.reduceat(values, starts) if len(starts) else values[:0]


def _numbers(place: Floats, region: Integers) -> Integers:
    """The number of the cell that each spot lies in, -1 for none.

    From the highest bits on: detector, layer, sector, and two indices of the cell in its layer and sector.
    Cell centres are multiples of the cell size from the sector's middle: along its tangent, and along z in
    the barrel or from the sector's middle radius in the endcaps.
    """
    numbers = np.full(len(region), -1)
    for code, one in enumerate(REGIONS):
        layers = one.layers
        spot = np.flatnonzero(region == code)
        x, y, z = (axis[spot] for axis in place)
        sector = sectors(x, y)
        normal = NORMALS.T[:, sector]
        height, sideways = x * normal[0] + y * normal[1], y * normal[0] - x * normal[1]
        length = np.abs(z)
        layer = np.floor((length - one.begin if one.begin else height - one.inner) / layers.pitch)
        inside = (layer >= 0) & (layer < layers.number)
        if one.begin:
            inside &= (height > one.inner) & (height < one.outer)
            to_edge = height * np.sin(np.pi / SIDES) - np.abs(sideways) * np.cos(np.pi / SIDES)
            inside &= to_edge > SECTOR_GAP
        else:
            inside &= length < one.end
        along = height - (one.inner + one.outer) / 2 if one.begin else z
        detector = one.code + (2 * (z > 0) if one.begin else 0)
        number = (detector << _LAYER_BITS | layer.astype(np.int64)) << _SECTOR_BITS | sector
        for index in (sideways, along):
            number = number << _BITS | (np.rint(index / layers.cell).astype(np.int64) + _MIDDLE)
        numbers[spot] = np.where(inside, number, -1)
    return numbers


def _centres(number: Integers) -> tuple[Integers, Floats, Floats, Floats]:
    """Detector and centre of cells, from their numbers."""
    fields = []
    for bits in (_BITS, _BITS, _SECTOR_BITS, _LAYER_BITS):
        fields.append(number & ((1 << bits) - 1))
        number = number >> bits
    second, first, sector, layer = fields
    x, y, z = np.zeros((3, len(number)))
    for one in REGIONS:
        layers = one.layers
        for side in (-1, 1) if one.begin else (0,):
            chosen = number == one.code + side + abs(side)
            plane = (one.begin or one.inner) + layers.sensor + layers.pitch * layer[chosen]
            sideways, along = ((index[chosen] - _MIDDLE) * layers.cell for index in (first, second))
            height = along + (one.inner + one.outer) / 2 if side else plane
            normal = NORMALS.T[:, sector[chosen]]
            x[chosen] = height * normal[0] - sideways * normal[1]
            y[chosen] = height * normal[1] + sideways * normal[0]
            z[chosen] = side * plane if side else along
    return number, x, y, z


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
