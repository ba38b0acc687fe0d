"""The flavour of jets, by the weakly decaying hadrons of the hard scatter in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import list_lengths
from collidium.errors import UnusableDataset
from collidium_plugins.jet_finder.clustering import FourVectors
from collidium_plugins.jet_finder.deposits import flat_columns

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
MIN_PT: Final = 5.0

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
    chosen = (flavour != LIGHT) & (columns["vertex_primary"] == _HARD_SCATTER) & (every.pt >= MIN_PT)
    return Hadrons(every.take(chosen), flavour[chosen])


def _columns(particles: pa.Table) -> dict[str, npt.NDArray[Any]]:
    present = [name for name in _COLUMNS if name in particles.column_names]
    if withheld := [name for name in present if particles.column(name).null_count]:
        raise UnusableDataset(f"table particles, column {withheld[0]}: has nulls; its truth may be withheld")
    return flat_columns(particles, "particles", _COLUMNS, "flavours of jets need it")
