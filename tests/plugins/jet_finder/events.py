"""Events made by hand: cells in given directions, and particles."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, sin, sinh
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from collidium.datasets.schemas import SCHEMAS

BARREL, BARREL_FACTOR, RADIUS = 10, 37.5, 1300.0


class Cell(NamedTuple):
    """Transverse energy of the particles, GeV, in a direction of the electromagnetic barrel."""

    pt: float
    eta: float
    phi: float


class Particle(NamedTuple):
    pdg_id: int
    pt: float
    eta: float
    phi: float
    vertex: int = 1


def calo_hits(*events: Sequence[Cell]) -> pa.Table:
    """Table ``calo_hits``, of events 0, 1, …"""
    columns: dict[str, list[list[Any]]] = {name: [] for name in SCHEMAS["calo_hits"].names[1:]}
    for cells in events:
        energy = [cell.pt * (1 + sinh(cell.eta) ** 2) ** 0.5 / BARREL_FACTOR for cell in cells]
        columns["detector"].append([BARREL] * len(cells))
        columns["x"].append([RADIUS * cos(cell.phi) for cell in cells])
        columns["y"].append([RADIUS * sin(cell.phi) for cell in cells])
        columns["z"].append([RADIUS * sinh(cell.eta) for cell in cells])
        columns["total_energy"].append(energy)
        columns["contrib_particle_ids"].append([[1]] * len(cells))
        columns["contrib_energies"].append([[one] for one in energy])
        columns["contrib_times"].append([[0.0]] * len(cells))
    return _table("calo_hits", columns)


def particles(*events: Sequence[Particle]) -> pa.Table:
    """Table ``particles``, of events 0, 1, …"""
    columns: dict[str, list[list[Any]]] = {name: [] for name in SCHEMAS["particles"].names[1:]}
    for ones in events:
        values: dict[str, list[Any]] = {
            "particle_id": [*range(1, len(ones) + 1)],
            "pdg_id": [one.pdg_id for one in ones],
            "px": [one.pt * cos(one.phi) for one in ones],
            "py": [one.pt * sin(one.phi) for one in ones],
            "pz": [one.pt * sinh(one.eta) for one in ones],
            "energy": [one.pt * (1 + sinh(one.eta) ** 2) ** 0.5 for one in ones],
            "vertex_primary": [one.vertex for one in ones],
        }
        for name, column in columns.items():
            column.append(values.get(name, [0] * len(ones)))
    return _table("particles", columns)


def scattered(random: np.random.Generator, count: int, pt: float) -> list[Cell]:
    """Cells all over the barrel, ``pt`` GeV on average."""
    columns = (random.exponential(pt, count), random.normal(0, 1, count), random.uniform(-3, 3, count))
    return [Cell(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]


def _table(name: str, columns: dict[str, list[list[Any]]]) -> pa.Table:
    schema = SCHEMAS[name]
    lengths = len(next(iter(columns.values())))
    arrays = [pa.array(column).cast(schema.field(one).type) for one, column in columns.items()]
    return pa.Table.from_arrays([pa.array(range(lengths), pa.uint32()), *arrays], schema=schema)
