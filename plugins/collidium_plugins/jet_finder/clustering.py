"""Four-vectors of many events, cells of the calorimeters among them, and their anti-kt jets by FastJet.

M. Cacciari et al., JHEP 04 (2008) 063. Cells are massless and from the detector's centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths, positions_in_event
from collidium.errors import UnusableDataset
from collidium.physics import calibration
from collidium.physics.constants import ECAL_CODE, SAMPLING
from collidium_plugins.jet_finder import RADIUS

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Cells with less energy than this, GeV, are not clustered.
MIN_ENERGY: Final = 0.02

_COLUMNS: Final = ("detector", "x", "y", "z", "total_energy")


@dataclass(frozen=True, slots=True, eq=False)
class FourVectors:
    """Arrays of one length, in the order of ``event``; GeV."""

    #: The row of the event in the table that it comes from.
    event: Integers
    px: Doubles
    py: Doubles
    pz: Doubles
    energy: Doubles

    def __len__(self) -> int:
        return len(self.event)

    @property
    def pt(self) -> Doubles:
        return np.hypot(self.px, self.py)

    @property
    def eta(self) -> Doubles:
        """Pseudorapidity; infinite along the beams, 0 without momentum."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.pz == 0, 0.0, np.arcsinh(self.pz / self.pt))

    @property
    def phi(self) -> Doubles:
        """Azimuth, from -π to π."""
        return np.arctan2(self.py, self.px)

    @property
    def mass(self) -> Doubles:
        """Invariant mass; 0 where rounding makes its square negative."""
        square = self.energy**2 - self.px**2 - self.py**2 - self.pz**2
        return np.sqrt(np.maximum(square, 0.0))

    def take(self, index: npt.NDArray[Any]) -> FourVectors:
        """Those at the places ``index``."""
        return FourVectors(*(getattr(self, field.name)[index] for field in fields(self)))

    def scaled(self, factor: float) -> FourVectors:
        """The same directions with momenta and energies times ``factor``."""
        momenta = (self.px, self.py, self.pz, self.energy)
        return FourVectors(self.event, *(component * factor for component in momenta))

    def followed_by(self, others: FourVectors) -> FourVectors:
        """These and then the others, whose events may be the same ones."""
        pairs = ((getattr(self, field.name), getattr(others, field.name)) for field in fields(self))
        return FourVectors(*(np.concatenate(pair) for pair in pairs))

    def summed(self, group: Integers, groups: int) -> FourVectors:
        """The sum of each of ``groups`` groups, none empty; ``group`` rises and says whose each vector is."""
        starts = np.searchsorted(group, np.arange(groups))
        momenta = (self.px, self.py, self.pz, self.energy)
        sums = (np.add.reduceat(one, starts) if groups else one[:0] for one in momenta)
        return FourVectors(self.event[starts], *sums)


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Jets, in the order of events."""

    #: The event of each jet.
    event: Integers
    #: For each vector its jet, an index of ``event``; -1 where it is in none.
    jet: Integers


def anti_kt(vectors: FourVectors, events: int, min_pt: float) -> Clusters:
    """Jets of each of ``events`` events with at least ``min_pt`` GeV, of vectors in the order of events."""
    import awkward  # imported here, because every command and every scoring process loads this plugin
    import fastjet

    fastjet.ClusterSequenceArea.set_fastjet_banner_stream(None)  # it would go to standard output
    jet = np.full(len(vectors), -1)
    if not len(vectors):
        return Clusters(np.empty(0, np.int64), jet)
    each = np.bincount(vectors.event, minlength=events)
    columns = {"px": vectors.px, "py": vectors.py, "pz": vectors.pz, "E": vectors.energy}
    inputs = awkward.unflatten(awkward.zip(columns, with_name="Momentum4D"), each)
    definition = fastjet.JetDefinition(fastjet.antikt_algorithm, RADIUS)
    members = fastjet.ClusterSequence(inputs, definition).constituent_index(min_pt)
    jets = np.asarray(awkward.num(members, axis=1))
    sizes = np.asarray(awkward.flatten(awkward.num(members, axis=2)))
    event = np.repeat(np.arange(events), jets)
    begins = (np.cumsum(each) - each)[np.repeat(event, sizes)]
    places = begins + np.asarray(awkward.flatten(awkward.flatten(members)))
    jet[places] = np.repeat(np.arange(len(event)), sizes)
    return Clusters(event, jet)


#: Width of a tower in pseudorapidity, and about that in azimuth, rad: small compared with a jet.
WIDTH: Final = 0.025
_AROUND: Final = round(2 * np.pi / WIDTH)
#: More than there are towers between the beams.
_MANY: Final = 1 << 16


def towers(cells: FourVectors) -> tuple[FourVectors, Integers]:
    """The sums of cells that lie in one tower, in the order of events, and the tower of each cell."""
    along = np.floor(np.clip(cells.eta / WIDTH, -_MANY / 2, _MANY / 2 - 1)).astype(np.int64) + _MANY // 2
    around = np.floor((cells.phi / (2 * np.pi) + 0.5) * _AROUND).astype(np.int64) % _AROUND
    number = (cells.event * _MANY + along) * _AROUND + around
    _, first, tower = np.unique(number, return_index=True, return_inverse=True)
    order = np.argsort(tower, kind="stable")  # cells of a tower stay in their order
    return cells.take(order).summed(tower[order], len(first)), tower


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
