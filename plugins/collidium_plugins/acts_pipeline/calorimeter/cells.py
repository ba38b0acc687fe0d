"""Sums energy deposits in cells, and the table ``calo_hits``."""

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

#: Bits of a cell number: for each of its two signed indices, its sector and its layer.
_BITS: Final = 12
_SECTOR_BITS: Final = 4
_LAYER_BITS: Final = 6
#: Bits that remain for the id of a particle.
_PARTICLE_BITS: Final = 24
_MIDDLE: Final = 1 << (_BITS - 1)

#: Time window, ns, after light from the origin. The values, its speed (mm/ns) and the offset (ns) are those
#: of the production of the hosted datasets.
WINDOW: Final = (-1.0, 10.0)
_SPEED: Final = 300.0
_OFFSET: Final = 0.1
#: Minimum energies of cells of the hadronic and the electromagnetic calorimeter in production, GeV.
THRESHOLDS: Final = (250e-6, 50e-6)


@dataclass(frozen=True, slots=True, eq=False)
class CaloHits:
    """Cells of one event, with the columns of the hosted table; energies are those in active layers."""

    detector: npt.NDArray[np.uint8]
    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.float32]
    z: npt.NDArray[np.float32]
    #: GeV.
    total_energy: npt.NDArray[np.float32]
    #: Number of contributions of each cell; the arrays of contributions are in the order of cells.
    contributions: Integers
    contrib_particle_ids: npt.NDArray[np.uint64]
    contrib_energies: npt.NDArray[np.float32]
    contrib_times: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.detector)


def cells(
    position: Floats, region: Integers, energy: Floats, time: Floats, particle_id: npt.NDArray[np.uint64]
) -> CaloHits:
    """Return the cells above threshold of spots at ``position`` (mm, shape (3, spots)), in GeV and ns.

    Spots outside of sensors or of the time window are ignored.
    """
    since = time - (np.sqrt((position**2).sum(axis=0)) / _SPEED - _OFFSET)
    number = np.where((since >= WINDOW[0]) & (since <= WINDOW[1]), _numbers(position, region), -1)
    spot = np.flatnonzero(number >= 0)
    key = (number[spot] << _PARTICLE_BITS) | particle_id[spot].astype(np.int64)
    spot = spot[np.argsort(key, kind="stable")]
    number, owner, energy, time = number[spot], particle_id[spot], energy[spot], time[spot]

    starts_cell = np.ones(len(number), bool)
    starts_cell[1:] = number[1:] != number[:-1]
    starts_contribution = starts_cell.copy()
    starts_contribution[1:] |= owner[1:] != owner[:-1]
    cell, contribution = np.flatnonzero(starts_cell), np.flatnonzero(starts_contribution)
    total = _sums(energy, cell)
    contributions = _sums(starts_contribution.astype(np.int64), cell)
    detector, x, y, z = _centres(number[cell])
    passes = total >= np.where(detector >= HCAL_CODE, *THRESHOLDS)
    kept = np.repeat(passes, contributions)
    energies = _sums(energy, contribution)[kept]
    return CaloHits(
        detector=detector[passes].astype(np.uint8),
        x=x[passes].astype(np.float32),
        y=y[passes].astype(np.float32),
        z=z[passes].astype(np.float32),
        total_energy=total[passes].astype(np.float32),
        contributions=contributions[passes],
        contrib_particle_ids=owner[contribution][kept],
        contrib_energies=energies.astype(np.float32),
        contrib_times=(_sums(energy * time, contribution)[kept] / energies).astype(np.float32),
    )


def _sums(values: npt.NDArray[_Number], starts: Integers) -> npt.NDArray[_Number]:
    return np.add.reduceat(values, starts) if len(starts) else values[:0]


def _numbers(position: Floats, region: Integers) -> Integers:
    """Return the number of the cell of each spot, or -1.

    From the highest bits: detector, layer, sector, and two indices of the cell in its layer and sector. Cell
    centres are at multiples of the cell size from the middle of the sector: along its tangent, and along z in
    the barrel or along the normal in the endcaps.
    """
    numbers = np.full(len(region), -1)
    for code, one in enumerate(REGIONS):
        layers = one.layers
        spot = np.flatnonzero(region == code)
        x, y, z = (axis[spot] for axis in position)
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
    """Return detector and centre (x, y, z) of cells from their numbers."""
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
    """Return the hosted table ``calo_hits``, one row per event."""
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
    """Return the number of cells of event ``row`` that each of particles 1, 2, … contributes to."""
    ids = pc.list_flatten(pc.list_flatten(table.column("contrib_particle_ids").slice(row, 1)))
    counts = np.bincount(np.asarray(ids).astype(np.int64), minlength=particles + 1)
    return counts[1:].astype(np.uint16)


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> pa.Array[Any]:
    return pa.array(np.concatenate(arrays)) if arrays else pa.array([])
