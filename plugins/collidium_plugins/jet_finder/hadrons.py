"""Hadrons of the hard scatter that tell the flavour of a jet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths
from collidium.errors import UnusableDataset
from collidium_plugins.jet_finder.flavour import LIGHT, flavour_of
from collidium_plugins.jet_finder.vectors import FourVectors

#: Hadrons with less transverse momentum, GeV, do not give a jet their flavour.
LEAST_PT: Final = 5.0

_MOMENTUM: Final = ("px", "py", "pz", "energy")
_COLUMNS: Final = ("pdg_id", "vertex_primary", *_MOMENTUM)
_HARD_SCATTER: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class Hadrons:
    """Hadrons with b or c quarks that decay weakly, of some events."""

    vectors: FourVectors
    flavour: npt.NDArray[np.uint8]


def heavy_hadrons(particles: pa.Table) -> Hadrons:
    """Those of table ``particles`` that come from the hard scatter, from :data:`LEAST_PT` on.

    Raises UnusableDataset where the table cannot tell: columns are missing, or withheld.
    """
    columns = _columns(particles)
    event = np.repeat(np.arange(particles.num_rows), list_lengths(particles, _COLUMNS[0]))
    momenta = (columns[name].astype(np.float64) for name in _MOMENTUM)
    every = FourVectors(event, *momenta)
    flavour = flavour_of(columns["pdg_id"].astype(np.int64))
    chosen = (flavour != LIGHT) & (columns["vertex_primary"] == _HARD_SCATTER) & (every.pt >= LEAST_PT)
    return Hadrons(every.take(chosen), flavour[chosen])


def _columns(particles: pa.Table) -> dict[str, npt.NDArray[Any]]:
    missing = [name for name in _COLUMNS if name not in particles.column_names]
    if missing:
        raise UnusableDataset(f"table particles lacks {', '.join(missing)}: it cannot tell flavours of jets")
    withheld = [name for name in _COLUMNS if particles.column(name).null_count]
    if withheld:
        raise UnusableDataset(f"table particles, column {withheld[0]}: has nulls; its truth may be withheld")
    try:
        flat = flatten(particles, _COLUMNS)
    except ValueError as error:
        raise UnusableDataset(f"table particles: {error}") from error
    return {name: np.asarray(flat.column(name)) for name in _COLUMNS}
