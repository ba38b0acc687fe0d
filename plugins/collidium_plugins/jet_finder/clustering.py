"""Anti-kt jets of many events (M. Cacciari, G. Salam, G. Soyez, JHEP 04 (2008) 063), by FastJet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from collidium_plugins.jet_finder import RADIUS
from collidium_plugins.jet_finder.vectors import FourVectors, Integers


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
