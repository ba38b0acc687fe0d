"""The quantities of generator and calorimeters, and all quantities that are validated.

At pileup 200 the number of cells has no reference that decides (483,000 and 670,000; ours are 692,000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import ECAL_CODE, HCAL_CODE
from collidium_plugins.validation import tracking
from collidium_plugins.validation.events import EventBlock
from collidium_plugins.validation.histograms import ETA_LABEL, PT_LABEL, Quantity, one_number

Array = npt.NDArray[Any]

#: GeV.
_SPECTRUM_PT: Final = np.geomspace(0.05, 1000, 44)

#: GeV: bins around 5, 10, 20, 50 and 100 GeV have a reference, those between have none.
_PHOTONS: Final = np.array([4.5, 5.5, 9, 11, 18, 22, 45, 55, 90, 110])
#: GeV: bins around the points of production's plot for pions.
_PIONS: Final = np.round(0.4781 * 1.76 ** (np.arange(11) - 0.5), 4).astype(np.float64)


def _cells(first_code: int, block: EventBlock) -> Array:
    """Return the energies of the cells of a calorimeter, MeV."""
    code = block["calo_hits.detector"]
    return 1000 * block["calo_hits.total_energy"][(code >= first_code) & (code < first_code + 3)]


def _cell_quantities() -> Iterator[Quantity]:
    for name, code, threshold in (("ECal", ECAL_CODE, 0.05), ("HCal", HCAL_CODE, 0.25)):

        def spectrum(block: EventBlock, code: int = code) -> tuple[Array, ...]:
            return (_cells(code, block),)

        def below(block: EventBlock, code: int = code, threshold: float = threshold) -> Array:
            return np.asarray(_cells(code, block) < 0.999 * threshold)

        def near(block: EventBlock, code: int = code, threshold: float = threshold) -> Array:
            cells = _cells(code, block)
            return (cells >= 0.999 * threshold) & (cells < 2 * threshold)

        low, title = name.lower(), f"Energy of {name} cells"
        label, edges = "energy in active layers (MeV)", np.geomspace(0.01, 1000, 101)
        yield Quantity(f"{low}_cells", title, label, "cells per event", edges, "spectrum", spectrum, log="xy")
        end = f"the threshold of {threshold} MeV"
        title = f"Fraction of {name} cells below {end}"
        yield one_number(f"{low}_below_threshold", title, "fraction", below)
        title = f"Fraction of {name} cells from {end} to twice that"
        yield one_number(f"{low}_near_threshold", title, "fraction", near)


def _photons(block: EventBlock, *, barrel: bool) -> tuple[Array, ...]:
    """Return the energy of unconverted photons, GeV, and its fraction in the ECal's active layers, %."""
    unconverted = np.ones(len(block.parent), bool)
    unconverted[block.parent[block.parent >= 0]] = False
    eta = np.abs(block.eta)
    inside = eta < 1.0 if barrel else (eta > 1.7) & (eta < 2.7)
    chosen = block.final & unconverted & (block["particles.pdg_id"] == 22) & inside
    chosen &= (block.radius < 100) & (block["particles.energy"] > _PHOTONS[0])
    energy = block["particles.energy"].astype(np.float64)
    return energy[chosen], 100 * block.deposited(calibrated=False)[chosen] / energy[chosen]


def _pions(block: EventBlock) -> tuple[Array, ...]:
    chosen = block.final & (np.abs(block["particles.pdg_id"]) == 211) & (np.abs(block.eta) < 3)
    energy = block["particles.energy"].astype(np.float64)[chosen]
    return block.pt[chosen], np.abs(block.deposited(calibrated=True)[chosen] / energy - 1)


def _ratio(block: EventBlock) -> Array:
    """Return the calibrated energy of particles within |η| < 3 over their true energy, by event."""
    visible = block.final & ~np.isin(np.abs(block["particles.pdg_id"]), (12, 13, 14, 16))
    chosen, event = visible & (np.abs(block.eta) < 3), block.event("particles")
    left = np.bincount(event[chosen], block.deposited(calibrated=True)[chosen], block.events)
    true = np.bincount(event[chosen], block["particles.energy"][chosen], block.events)
    some = true > 0
    return np.asarray(left[some] / true[some])


def _calorimeters() -> Iterator[Quantity]:
    yield from _cell_quantities()
    for part in ("barrel", "endcap"):

        def fill(block: EventBlock, barrel: bool = part == "barrel") -> tuple[Array, ...]:
            return _photons(block, barrel=barrel)

        x, spread = "energy (GeV)", np.linspace(0, 6, 1201)
        title = f"Photon response of the ECal {part} (seen over true energy)"
        yield Quantity(
            f"photon_response_{part}", title, x, "seen (%)", _PHOTONS, "median", fill, spread, log="x"
        )
        title = f"Photon resolution of the ECal {part} (width of the response)"
        yield Quantity(
            f"photon_width_{part}", title, x, "width (%)", _PHOTONS, "width", fill, spread, log="x"
        )
    title = "Charged pions: mean |E(calorimeters) - E(true)| / E(true)"
    yield Quantity("pion_residual_pt", title, PT_LABEL, "mean", _PIONS, "mean", _pions, log="x")
    yield one_number("calorimeter_ratio", "Calibrated over true energy within |η| < 3", "mean", _ratio)


CALORIMETER_QUANTITIES: Final[tuple[Quantity, ...]] = tuple(_calorimeters())


def _per_event(name: str, title: str, count: Callable[[EventBlock], Array]) -> Quantity:
    """Return the mean over events of a number per event."""
    return one_number(f"{name}_per_event", f"{title} per event", "mean", count)


def _listed(column: str) -> Callable[[EventBlock], Array]:
    return lambda block: block.lengths(column)


def _counted(block: EventBlock, events: Array) -> Array:
    return np.asarray(np.bincount(events, minlength=block.events))


def _contributions(block: EventBlock) -> Array:
    lengths = block.inner_lengths("calo_hits.contrib_energies")
    return np.bincount(block.event("calo_hits"), lengths, block.events)


def _collisions(block: EventBlock) -> Array:
    event, number = block.event("particles"), block["particles.vertex_primary"].astype(np.int64)
    return _counted(block, np.unique(np.stack([event, number]), axis=1)[0])


def _final_charged(block: EventBlock) -> Array:
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
    """Return the width of the distribution of collisions, mm or ns: the vertices of their first particles."""

    def vertices(block: EventBlock) -> Array:
        prompt = np.flatnonzero(block["particles.primary"].astype(bool) & (block.parent < 0))
        event, number = block.event("particles"), block["particles.vertex_primary"].astype(np.int64)
        pairs = np.stack([event[prompt], number[prompt]])
        first = prompt[np.unique(pairs, axis=1, return_index=True)[1]]
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
    *CALORIMETER_QUANTITIES,
)
