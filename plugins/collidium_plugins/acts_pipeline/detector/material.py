"""What the tracker is made of: an average slab for each kind of module, the beam pipe and the support tube.

A slab is the average over a module of the parts that the Open Data Detector's description gives it: sensor,
board, connector, foam or carbon fibre, cooling pipe, cables, and its share of the layer's support. So
particles meet the right amount of material on average, but not its structure; services between the barrels
and the ends are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Element:
    """Properties from the tables of the Particle Data Group (https://pdg.lbl.gov, atomic and nuclear)."""

    charge: int
    mass: float
    #: g/cm³
    density: float
    #: Radiation and nuclear interaction length, g/cm².
    radiation: float
    interaction: float
    #: Mean excitation energy, eV.
    excitation: float


BERYLLIUM: Final = Element(4, 9.012, 1.848, 65.19, 77.8, 63.7)
ALUMINIUM: Final = Element(13, 26.982, 2.699, 24.01, 107.2, 166.0)
SILICON: Final = Element(14, 28.086, 2.329, 21.82, 108.4, 173.0)
TITANIUM: Final = Element(22, 47.867, 4.540, 16.16, 126.2, 233.0)
COPPER: Final = Element(29, 63.546, 8.960, 12.86, 137.3, 322.0)


def _carbon(density: float) -> Element:
    """Kapton, carbon fibre and foam count as carbon of their density."""
    return Element(6, 12.011, density, 42.70, 85.8, 78.0)


KAPTON: Final = _carbon(1.43)
FIBRE: Final = _carbon(1.5)
FOAM: Final = _carbon(0.245)

Slab = Mapping[Element, float]

_PIXEL_BARREL: Final = {
    SILICON: 0.125,
    KAPTON: 0.23,
    ALUMINIUM: 0.022,
    FOAM: 1.4,
    TITANIUM: 0.039,
    COPPER: 0.041,
    FIBRE: 1.6,
}
_PIXEL_END: Final = {SILICON: 0.125, KAPTON: 0.25, ALUMINIUM: 0.021, TITANIUM: 0.067, FIBRE: 3.3}
_SHORT_BARREL: Final = {
    SILICON: 0.2,
    KAPTON: 0.25,
    ALUMINIUM: 0.052,
    FOAM: 3.5,
    TITANIUM: 0.042,
    COPPER: 0.065,
    FIBRE: 1.7,
}
_SHORT_END: Final = {SILICON: 0.25, KAPTON: 0.25, ALUMINIUM: 0.057, TITANIUM: 0.023, FIBRE: 1.5}
_LONG_BARREL: Final = {
    SILICON: 0.25,
    KAPTON: 0.25,
    ALUMINIUM: 0.052,
    TITANIUM: 0.012,
    COPPER: 0.016,
    FIBRE: 2.4,
}
_LONG_END: Final = {SILICON: 0.25, KAPTON: 0.25, TITANIUM: 0.004, FIBRE: 2.5}

#: mm of each part, for each sensor of a volume.
MODULES: Final[Mapping[int, Slab]] = {
    16: _PIXEL_END,
    17: _PIXEL_BARREL,
    18: _PIXEL_END,
    23: _SHORT_END,
    24: _SHORT_BARREL,
    25: _SHORT_END,
    28: _LONG_END,
    29: _LONG_BARREL,
    30: _LONG_END,
}
BEAM_PIPE: Final[Slab] = {BERYLLIUM: 0.8}
SUPPORT_TUBE: Final[Slab] = {FIBRE: 2.0}


def radiation_lengths(slab: Slab) -> float:
    """The slab's thickness in radiation lengths."""
    return sum(0.1 * thickness * part.density / part.radiation for part, thickness in slab.items())


def document(slabs: Mapping[str, Slab]) -> dict[str, Any]:
    """A material map of ACTS (format ``acts-material-map``, version 1) with these slabs, by their keys."""
    return {
        "header": {
            "format": "acts-material-map",
            "version": 1,
            "units": {"length": "mm", "angle": "rad", "energy": "eV", "material_amount": "mol"},
        },
        "surfaces": [
            {
                "target": {"kind": "stable-key", "key": key, "recorded_geometry_id": {}},
                "material": {
                    "kind": "homogeneous",
                    "settings": {"mapping_type": "default", "split_factor": 1.0},
                    "slab": _mixed(slab),
                },
            }
            for key, slab in slabs.items()
        ],
    }


def _mixed(slab: Slab) -> dict[str, Any]:
    """One material of the slab's whole thickness that has its atoms, electrons and lengths."""
    thickness = sum(slab.values())
    amounts = {part: 1e-3 * part.density * mm / part.mass for part, mm in slab.items()}  # mol/mm²
    atoms = sum(amounts.values())
    electrons = sum(part.charge * amount for part, amount in amounts.items())
    interactions = sum(0.1 * mm * part.density / part.interaction for part, mm in slab.items())
    excitation = sum(part.charge * amount * math.log(part.excitation) for part, amount in amounts.items())
    return {
        "thickness": thickness,
        "material": {
            "kind": "material",
            "radiation_length": thickness / radiation_lengths(slab),
            "interaction_length": thickness / interactions,
            "relative_atomic_mass": sum(part.mass * amount for part, amount in amounts.items()) / atoms,
            "atomic_number": electrons / atoms,
            "molar_density": atoms / thickness,
            "molar_electron_density": electrons / thickness,
            "mean_excitation_energy": math.exp(excitation / electrons),
        },
    }
