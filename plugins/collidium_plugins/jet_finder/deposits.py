"""Cells of the calorimeters as massless four-vectors from the detector's centre."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths, positions_in_event
from collidium.errors import UnusableDataset
from collidium.physics import calibration
from collidium.physics.constants import ECAL_CODE, SAMPLING
from collidium_plugins.jet_finder.clustering import FourVectors, Integers

#: Cells with less energy than this, GeV, are not clustered.
MIN_ENERGY: Final = 0.02

_COLUMNS: Final = ("detector", "x", "y", "z", "total_energy")


@dataclass(frozen=True, slots=True, eq=False)
class Deposits:
    """Cells of some events, in an order that depends on measured quantities alone."""

    vectors: FourVectors
    #: The place of each cell in its event's list.
    place: Integers


def deposits(calo_hits: pa.Table) -> Deposits:
    """The cells of table ``calo_hits``, calibrated to the energy of particles.

    Raises UnusableDataset for missing columns, nulls and unknown codes.
    """
    cells = _cells(calo_hits)
    lengths = list_lengths(calo_hits, _COLUMNS[0])
    event = np.repeat(np.arange(calo_hits.num_rows), lengths)
    x, y, z = (cells[name].astype(np.float64) for name in ("x", "y", "z"))
    factors = calibration(cells["detector"])
    if np.isnan(factors).any():
        last = ECAL_CODE + len(SAMPLING) - 1
        raise UnusableDataset(f"table calo_hits, column detector: has codes other than {ECAL_CODE} to {last}")
    energy = cells["total_energy"].astype(np.float64) * factors
    distance = np.sqrt(x**2 + y**2 + z**2)
    kept = np.flatnonzero((energy >= MIN_ENERGY) & (distance > 0))
    # FastJet's sums depend on the order in their last digits; that of a table may follow the truth.
    columns = (cells["detector"], z, y, x, energy, event)
    order = kept[np.lexsort([column[kept] for column in columns])]
    each = energy[order] / distance[order]
    vectors = FourVectors(event[order], x[order] * each, y[order] * each, z[order] * each, energy[order])
    return Deposits(vectors, positions_in_event(lengths)[order])


def flat_columns(
    table: pa.Table, name: str, columns: Sequence[str], consequence: str
) -> dict[str, npt.NDArray[Any]]:
    """The elements of list columns of a table; raises UnusableDataset if any is missing or null."""
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise UnusableDataset(f"table {name} lacks {', '.join(missing)}: {consequence}")
    try:
        flat = flatten(table, columns)
    except ValueError as error:
        raise UnusableDataset(f"table {name}: {error}") from error
    for column in columns:
        if flat.column(column).null_count:
            raise UnusableDataset(f"table {name}, column {column}: has nulls")
    return {column: np.asarray(flat.column(column)) for column in columns}


def _cells(calo_hits: pa.Table) -> dict[str, npt.NDArray[Any]]:
    cells = flat_columns(calo_hits, "calo_hits", _COLUMNS, "jets cannot be made of it")
    if not all(np.isfinite(column).all() for column in cells.values()):
        raise UnusableDataset("table calo_hits: has values that are not finite")
    return cells
