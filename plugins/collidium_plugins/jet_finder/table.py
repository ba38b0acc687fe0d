"""The hosted table ``jets`` of some events, from their deposits and particles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collidium.contracts.tables import nested, positions_in_event
from collidium.datasets.schemas import SCHEMAS
from collidium_plugins.jet_finder.clustering import FourVectors, Integers, anti_kt, towers
from collidium_plugins.jet_finder.deposits import deposits
from collidium_plugins.jet_finder.flavour import Hadrons, heavy_hadrons, strongest

#: Jets that are kept: transverse momentum, GeV, and absolute pseudorapidity, that of the tracker.
MIN_PT: Final = 20.0
MAX_ETA: Final = 2.5

#: What FastJet sums differs from our sums in the last digits.
_MARGIN: Final = 0.01
#: Hadrons are clustered along with next to no momentum, and change nothing: ghosts (M. Cacciari, G. Salam,
#: Phys. Lett. B 659 (2008) 119).
_GHOST: Final = 1e-100

SCHEMA: Final = SCHEMAS["jets"]


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
