"""What is validated: each quantity is one entry, with its bins and how a block of events fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium_plugins.validation import calorimeters, tracking
from collidium_plugins.validation.events import Block
from collidium_plugins.validation.histograms import ETA_LABEL, PT_LABEL, Quantity, one_number

Array = npt.NDArray[Any]

#: GeV.
_SPECTRUM_PT: Final = np.geomspace(0.05, 1000, 44)


def _per_event(name: str, title: str, count: Callable[[Block], Array]) -> Quantity:
    """The mean over events of a number that each has."""
    return one_number(f"{name}_per_event", f"{title} per event", "mean", count)


def _listed(column: str) -> Callable[[Block], Array]:
    return lambda block: block.lengths(column)


def _counted(block: Block, events: Array) -> Array:
    return np.asarray(np.bincount(events, minlength=block.events))


def _contributions(block: Block) -> Array:
    lengths = block.inner_lengths("calo_hits.contrib_energies")
    return np.bincount(block.event("calo_hits"), lengths, block.events)


def _collisions(block: Block) -> Array:
    event, number = block.event("particles"), block["particles.vertex_primary"].astype(np.int64)
    return _counted(block, np.unique(np.stack([event, number]), axis=1)[0])


def _final_charged(block: Block) -> Array:
    return np.asarray(block.final & (block["particles.charge"] != 0))


_MULTIPLICITIES: Final = (
    _per_event("collisions", "Collisions", _collisions),
    _per_event("particles", "Particles", _listed("particles.px")),
    _per_event(
        "charged",
        "Charged particles of the generator within |η| < 3",
        lambda block: _counted(
            block, block.event("particles")[_final_charged(block) & (np.abs(block.eta) < 3)]
        ),
    ),
    _per_event("hits", "Tracker hits", _listed("tracker_hits.x")),
    _per_event("cells", "Calorimeter cells", _listed("calo_hits.x")),
    _per_event("contributions", "Contributions to cells", _contributions),
    _per_event("tracks", "Tracks", _listed("tracks.d0")),
)


# -- generator -------------------------------------------------------------------------------------------


def _width_of_vertices(axis: str, title: str) -> Quantity:
    """Of where collisions are, in mm or ns: the place of their first particle that was not made later."""

    def vertices(block: Block) -> Array:
        made_there = np.flatnonzero(block["particles.primary"].astype(bool) & (block.parent < 0))
        event, number = block.event("particles"), block["particles.vertex_primary"].astype(np.int64)
        pairs = np.stack([event[made_there], number[made_there]])
        first = made_there[np.unique(pairs, axis=1, return_index=True)[1]]
        return block[f"particles.{axis}"][first]

    return one_number(f"vertex_{axis}", f"Width of the luminous region in {title}", "deviation", vertices)


_GENERATOR: Final = (
    Quantity(
        "generator_pt",
        "Charged particles of the generator",
        PT_LABEL,
        "per event",
        _SPECTRUM_PT,
        "spectrum",
        lambda block: (block.pt[_final_charged(block)],),
        log="xy",
    ),
    Quantity(
        "generator_eta",
        "Charged particles of the generator",
        ETA_LABEL,
        "per event",
        np.linspace(-6, 6, 49),
        "spectrum",
        lambda block: (block.eta[_final_charged(block)],),
    ),
    Quantity(
        "vertex_vz_spectrum",
        "Production vertices of charged particles",
        "z (mm)",
        "per event",
        np.linspace(-250, 250, 51),
        "spectrum",
        lambda block: (block["particles.vz"][_final_charged(block)],),
    ),
    _width_of_vertices("vx", "x (mm)"),
    _width_of_vertices("vy", "y (mm)"),
    _width_of_vertices("vz", "z (mm)"),
    _width_of_vertices("time", "time (ns)"),
)


QUANTITIES: Final[tuple[Quantity, ...]] = (
    *_MULTIPLICITIES,
    *_GENERATOR,
    *tracking.QUANTITIES,
    *calorimeters.QUANTITIES,
)
