"""The hosted table ``jets`` of some events, from their deposits and particles.

The flavour of a jet follows from the weakly decaying hadrons of the hard scatter in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import list_lengths, nested, positions_in_event
from collidium.datasets.schemas import SCHEMAS
from collidium.errors import UnusableDataset
from collidium_plugins.jet_finder.clustering import (
    FourVectors,
    Integers,
    anti_kt,
    deposits,
    flat_columns,
    towers,
)

#: Jets that are kept: transverse momentum, GeV, and absolute pseudorapidity, that of the tracker.
MIN_PT: Final = 20.0
MAX_ETA: Final = 2.5

#: What FastJet sums differs from our sums in the last digits.
_MARGIN: Final = 0.01
#: Hadrons are clustered along with next to no momentum, and change nothing: ghosts (M. Cacciari, G. Salam,
#: Phys. Lett. B 659 (2008) 119).
_GHOST: Final = 1e-100

SCHEMA: Final = SCHEMAS["jets"]

BOTTOM: Final = 5
CHARM: Final = 4
LIGHT: Final = 0

#: Absolute PDG ids of the hadrons with b or c quarks that have only the weak force to decay by, and their
#: flavour: the ground states. Excited ones decay to them, and quarkonia to anything. Monte Carlo numbering
#: scheme: Review of Particle Physics, R. L. Workman et al., PTEP 2022, 083C01, chapter 45.
WEAKLY_DECAYING: Final[Mapping[int, int]] = {
    # B0, B+, Bs, Bc
    **dict.fromkeys((511, 521, 531, 541), BOTTOM),
    # Λb; Ξb-, Ξb0; Ωb; with c: Ξbc, Ωbc, Ωbcc; with two: Ξbb, Ωbb, Ωbbc; three
    **dict.fromkeys((5122, 5132, 5232, 5332, 5142, 5242, 5342, 5442), BOTTOM),
    **dict.fromkeys((5512, 5522, 5532, 5542, 5554), BOTTOM),
    # D+, D0, Ds
    **dict.fromkeys((411, 421, 431), CHARM),
    # Λc; Ξc0, Ξc+; Ωc; with two: Ξcc, Ωcc; three
    **dict.fromkeys((4122, 4132, 4232, 4332, 4412, 4422, 4432, 4444), CHARM),
}


def flavour_of(pdg_id: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """5 for hadrons and antihadrons with b that decay weakly, 4 for those with c and no b, else 0."""
    known = np.array(sorted(WEAKLY_DECAYING))
    flavours = np.array([WEAKLY_DECAYING[number] for number in known.tolist()], np.uint8)
    kind = np.abs(pdg_id)
    place = np.minimum(np.searchsorted(known, kind), len(known) - 1)
    return np.where(known[place] == kind, flavours[place], np.uint8(LIGHT))


def strongest(
    flavours: npt.NDArray[np.uint8], jet: npt.NDArray[np.int64], jets: int
) -> npt.NDArray[np.uint8]:
    """The flavour of each of ``jets`` jets: b before c, light without any; a ``jet`` of -1 is none."""
    found = np.full(jets, LIGHT, np.uint8)
    inside = jet >= 0
    np.maximum.at(found, jet[inside], flavours[inside])
    return found


#: Hadrons with less transverse momentum, GeV, do not give a jet their flavour.
HADRON_MIN_PT: Final = 5.0

_MOMENTUM: Final = ("px", "py", "pz", "energy")
_COLUMNS: Final = ("pdg_id", "vertex_primary", *_MOMENTUM)
_HARD_SCATTER: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class Hadrons:
    """Hadrons with b or c quarks that decay weakly, of some events."""

    vectors: FourVectors
    flavour: npt.NDArray[np.uint8]


def heavy_hadrons(particles: pa.Table) -> Hadrons:
    """Those of table ``particles`` that come from the hard scatter, from :data:`MIN_PT` on.

    Raises UnusableDataset if columns are missing or withheld.
    """
    columns = _columns(particles)
    event = np.repeat(np.arange(particles.num_rows), list_lengths(particles, _COLUMNS[0]))
    momenta = (columns[name].astype(np.float64) for name in _MOMENTUM)
    every = FourVectors(event, *momenta)
    flavour = flavour_of(columns["pdg_id"].astype(np.int64))
    chosen = (flavour != LIGHT) & (columns["vertex_primary"] == _HARD_SCATTER) & (every.pt >= HADRON_MIN_PT)
    return Hadrons(every.take(chosen), flavour[chosen])


def _columns(particles: pa.Table) -> dict[str, npt.NDArray[Any]]:
    present = [name for name in _COLUMNS if name in particles.column_names]
    if withheld := [name for name in present if particles.column(name).null_count]:
        raise UnusableDataset(f"table particles, column {withheld[0]}: has nulls; its truth may be withheld")
    return flat_columns(particles, "particles", _COLUMNS, "flavours of jets need it")


def jets(calo_hits: pa.Table, particles: pa.Table | None) -> pa.Table:
    """Table ``jets`` of the events of ``calo_hits``; without ``particles`` flavours are null.

    Tables have one row per event, the same ones in the same order. Jets are sorted by decreasing transverse
    momentum. Raises UnusableDataset for unusable tables.
    """
    cells = deposits(calo_hits)
    hadrons = None if particles is None else heavy_hadrons(particles)
    jet, of_hadrons = _clustered(cells.vectors, hadrons, calo_hits.num_rows)
    order = np.argsort(jet, kind="stable")[np.count_nonzero(jet < 0) :]
    found = cells.vectors.take(order).summed(jet[order], jet.max(initial=-1) + 1)
    chosen = _chosen(found)
    counts = np.bincount(found.event[chosen], minlength=calo_hits.num_rows)
    columns: dict[str, Any] = {name: getattr(found, name)[chosen] for name in ("pt", "eta", "phi", "mass")}
    columns["jet_id"] = positions_in_event(counts)
    columns["constituents"] = _constituents(chosen, jet[order], cells.place[order])
    if hadrons is not None:
        columns["flavour"] = strongest(hadrons.flavour, of_hadrons, len(found))[chosen]
    return _table(calo_hits.column("event_id"), counts, columns)


def _clustered(cells: FourVectors, hadrons: Hadrons | None, events: int) -> tuple[Integers, Integers]:
    """For each cell and for each hadron its jet, -1 for none."""
    inputs, tower = towers(cells)
    places = np.arange(len(inputs))
    if hadrons is not None:
        inputs = inputs.followed_by(hadrons.vectors.scaled(_GHOST))
        places = np.argsort(inputs.event, kind="stable")
    jet = np.empty(len(inputs), np.int64)
    jet[places] = anti_kt(inputs.take(places), events, MIN_PT - _MARGIN).jet
    cut = tower.max(initial=-1) + 1
    return jet[:cut][tower], jet[cut:]


def _chosen(found: FourVectors) -> Integers:
    """The jets that are kept, in their order within events."""
    kept = np.flatnonzero((found.pt >= MIN_PT) & (np.abs(found.eta) < MAX_ETA))
    columns = (found.phi, found.eta, -found.pt, found.event)
    return kept[np.lexsort([column[kept] for column in columns])]


def _constituents(chosen: Integers, jet: Integers, place: Integers) -> pa.Array[Any]:
    """For each chosen jet the places of its cells, rising."""
    rank = np.full(jet.max(initial=-1) + 1, len(chosen))
    rank[chosen] = np.arange(len(chosen))
    order = np.lexsort((place, rank[jet]))
    sizes = np.bincount(rank[jet], minlength=len(chosen) + 1)[:-1]  # but for those that are not chosen
    return nested(sizes, pa.array(place[order][: sizes.sum()]))


def _table(event_id: pa.ChunkedArray[Any], counts: Integers, columns: Mapping[str, Any]) -> pa.Table:
    arrays: list[Any] = [event_id]
    for field in list(SCHEMA)[1:]:
        if field.name in columns:
            arrays.append(nested(counts, pa.array(columns[field.name])).cast(field.type))
        else:
            arrays.append(pa.nulls(len(counts), field.type))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)
