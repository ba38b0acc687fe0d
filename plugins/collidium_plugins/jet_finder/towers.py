"""Cells that lie in one direction are clustered as one: there are many layers, and fine ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from collidium_plugins.jet_finder.vectors import FourVectors, Integers

#: Width of a tower in pseudorapidity, and about that in azimuth, rad: small beside the radius of a jet.
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
