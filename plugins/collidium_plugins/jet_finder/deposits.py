"""Cells of the calorimeters as what was deposited there: massless four-vectors from the detector's centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths, positions_in_event
from collidium.datasets.schemas import ECAL_CODE, SAMPLING
from collidium.errors import UnusableDataset
from collidium_plugins.jet_finder.vectors import FourVectors, Integers

#: Cells with less energy than this, GeV, are not clustered.
LEAST_ENERGY: Final = 0.02

_COLUMNS: Final = ("detector", "x", "y", "z", "total_energy")


@dataclass(frozen=True, slots=True, eq=False)
class Deposits:
    """Cells of some events, in an order that follows from what was measured alone."""

    vectors: FourVectors
    #: The place of each cell in its event's list.
    place: Integers


def deposits(calo_hits: pa.Table) -> Deposits:
    """The cells of table ``calo_hits``, calibrated to the energy of particles.

    Raises UnusableDataset for a table that lacks a column, or has nulls or unknown codes in it.
    """
    cells = _cells(calo_hits)
    lengths = list_lengths(calo_hits, _COLUMNS[0])
    event = np.repeat(np.arange(calo_hits.num_rows), lengths)
    x, y, z = (cells[name].astype(np.float64) for name in ("x", "y", "z"))
    energy = cells["total_energy"].astype(np.float64) * _calibration(cells["detector"])
    distance = np.sqrt(x**2 + y**2 + z**2)
    kept = np.flatnonzero((energy >= LEAST_ENERGY) & (distance > 0))
    # FastJet's sums depend on the order in their last digits; that of a table may follow the truth.
    columns = (cells["detector"], z, y, x, energy, event)
    order = kept[np.lexsort([column[kept] for column in columns])]
    each = energy[order] / distance[order]
    vectors = FourVectors(event[order], x[order] * each, y[order] * each, z[order] * each, energy[order])
    return Deposits(vectors, positions_in_event(lengths)[order])


def _cells(calo_hits: pa.Table) -> dict[str, npt.NDArray[Any]]:
    missing = [name for name in _COLUMNS if name not in calo_hits.column_names]
    if missing:
        raise UnusableDataset(f"table calo_hits lacks {', '.join(missing)}: jets cannot be made of it")
    try:
        flat = flatten(calo_hits, _COLUMNS)
    except ValueError as error:
        raise UnusableDataset(f"table calo_hits: {error}") from error
    for name in _COLUMNS:
        if flat.column(name).null_count:
            raise UnusableDataset(f"table calo_hits, column {name}: has nulls")
    cells = {name: np.asarray(flat.column(name)) for name in _COLUMNS}
    if not all(np.isfinite(column).all() for column in cells.values()):
        raise UnusableDataset("table calo_hits: has values that are not finite")
    return cells


def _calibration(detector: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Energy of the particles over energy in the active layers."""
    region = detector.astype(np.int64) - ECAL_CODE
    if len(region) and not 0 <= region.min() <= region.max() < len(SAMPLING):
        raise UnusableDataset(
            f"table calo_hits, column detector: has codes other than {ECAL_CODE} to "
            f"{ECAL_CODE + len(SAMPLING) - 1}"
        )
    return np.array(SAMPLING)[region]
