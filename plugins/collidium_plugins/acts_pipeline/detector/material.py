"""Material of the tracker: slabs for modules, beam pipe and solenoid, and surfaces for services.

The slab of a module averages the parts in the description of the Open Data Detector over its area: sensor,
board, connector, foam, cooling pipe, cables and carbon fibre of supports, where the amount of fibre is the
minimum over directions in the reference. The remaining material of the reference lies on surfaces around and
between the modules. So the amount of material is right in each direction, but not its structure.

Surfaces differ between both ends, as no symmetric ones are within 10% of the reference at both: 0.493 and
0.604 radiation lengths of short strips at |η| = 2.87.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from collidium_plugins.acts_pipeline.detector import layout


@dataclass(frozen=True, slots=True)
class Element:
    """A chemical element. Source: Particle Data Group, atomic and nuclear properties (https://pdg.lbl.gov)."""

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
    """Kapton, carbon fibre and foam are modelled as carbon of their density."""
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
    FIBRE: 1.6,
}
_PIXEL_END: Final = {
    SILICON: 0.125,
    KAPTON: 0.25,
    ALUMINIUM: 0.021,
    TITANIUM: 0.067,
    COPPER: 0.18,
    FIBRE: 3.1,
}
_SHORT_BARREL: Final = {
    SILICON: 0.2,
    KAPTON: 0.25,
    ALUMINIUM: 0.052,
    FOAM: 3.5,
    TITANIUM: 0.042,
    FIBRE: 2.15,
}
_SHORT_END: Final = {SILICON: 0.25, KAPTON: 0.25, ALUMINIUM: 0.057, TITANIUM: 0.023, FIBRE: 1.7}
_LONG_BARREL: Final = {
    SILICON: 0.25,
    KAPTON: 0.25,
    ALUMINIUM: 0.052,
    TITANIUM: 0.012,
    FIBRE: 2.4,
}
_LONG_END: Final = {SILICON: 0.25, KAPTON: 0.25, TITANIUM: 0.004, FIBRE: 3.0}

#: Slab of each sensor, by volume; thicknesses in mm.
MODULES: Final[Mapping[str, Slab]] = {
    "16": _PIXEL_END,
    "17": _PIXEL_BARREL,
    "18": _PIXEL_END,
    "23": _SHORT_END,
    "24": _SHORT_BARREL,
    "25": _SHORT_END,
    "28": _LONG_END,
    "29": _LONG_BARREL,
    "30": _LONG_END,
}
BEAM_PIPE: Final[Slab] = {BERYLLIUM: 0.8}
SOLENOID: Final[Slab] = {ALUMINIUM: 40.0}


@dataclass(frozen=True, slots=True)
class Bins:
    """Slabs in bins along ``direction``: ``z`` of a cylinder or ``r`` of a disc; ``edges`` in mm."""

    direction: str
    edges: Sequence[float]
    slabs: Sequence[Slab]


#: Material of the Open Data Detector in bins of η of straight lines from the origin (``reference``), and the
#: part that modules do not account for (``surfaces``): mm of carbon fibre and copper at a radius ``r`` or at
#: both ``z``. Written by ``python docs/make_material.py --solve``.
MAP: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("material.json").read_text())


def slabs(scale: Mapping[str, float] | float = 1.0) -> dict[str, Slab | Bins]:
    """Return the material of modules, by volume id, and of other surfaces, by name.

    Parameters
    ----------
    scale : float or mapping of str to float
        Factor of all thicknesses, or factors by name; names that are not in the mapping get no material.
    """
    found: dict[str, Slab | Bins] = {}
    for name, slab in MODULES.items():
        found[name] = _scaled(slab, _factor(scale, name))
    found["BeamPipe"] = _scaled(BEAM_PIPE, _factor(scale, "BeamPipe"))
    found["Solenoid"] = _within(layout.SOLENOID_HALF_LENGTH, _scaled(SOLENOID, _factor(scale, "Solenoid")))
    for name, surface in MAP["surfaces"].items():
        bins = _bins(surface, _factor(scale, name))
        names = (name,) if len(bins) == 1 else (f"{name}-", f"{name}+")
        found |= dict(zip(names, bins, strict=True))
    return found


def _bins(surface: Mapping[str, Any], factor: float) -> tuple[Bins, ...]:
    """Return the bins of a cylinder, or of the discs at negative and at positive z."""
    thicknesses = zip(surface["fibre"], surface["copper"], strict=True)
    slabs = [_scaled({FIBRE: fibre, COPPER: copper}, factor) for fibre, copper in thicknesses]
    slopes = [math.sinh(eta) for eta in MAP["eta_edges"]]
    if "r" in surface:
        return (Bins("z", [surface["r"] * slope for slope in slopes], slabs),)
    middle = len(slabs) // 2
    sides = (slopes[:middle], slabs[:middle]), (slopes[:middle:-1], slabs[: middle - 1 : -1])
    return tuple(
        Bins("r", [*(surface["z"] / abs(slope) for slope in outwards), _FAR], those)
        for outwards, those in sides
    )


def _within(half_length: float, slab: Slab) -> Bins:
    """Return bins with the slab between both ends of a cylinder and nothing beyond."""
    return Bins("z", [-_FAR, -half_length, half_length, _FAR], [{}, slab, {}])


#: Farther than any surface, mm.
_FAR: Final = 1e5


def _factor(scale: Mapping[str, float] | float, name: str) -> float:
    return scale.get(name, 0.0) if isinstance(scale, Mapping) else scale


def _scaled(slab: Slab, factor: float) -> Slab:
    return {part: factor * mm for part, mm in slab.items()}


def radiation_lengths(slab: Slab) -> float:
    """Return the thickness in radiation lengths."""
    return sum(0.1 * thickness * part.density / part.radiation for part, thickness in slab.items())


def interaction_lengths(slab: Slab) -> float:
    """Return the thickness in nuclear interaction lengths."""
    return sum(0.1 * thickness * part.density / part.interaction for part, thickness in slab.items())


def document(slabs: Mapping[str, Slab | Bins]) -> dict[str, Any]:
    """Return an ACTS material map (format ``acts-material-map``, version 1) of these slabs."""
    return {
        "header": {
            "format": "acts-material-map",
            "version": 1,
            "units": {"length": "mm", "angle": "rad", "energy": "eV", "material_amount": "mol"},
        },
        "surfaces": [
            {
                "target": {"kind": "stable-key", "key": key, "recorded_geometry_id": {}},
                "material": {"settings": {"mapping_type": "default", "split_factor": 1.0}} | _payload(slab),
            }
            for key, slab in slabs.items()
        ],
    }


def _payload(slab: Slab | Bins) -> dict[str, Any]:
    if isinstance(slab, Mapping):
        return {"kind": "homogeneous", "slab": _mixed(slab)}
    axis = {"kind": "variable", "edges": slab.edges, "boundary": "bound", "direction": slab.direction}
    return {"kind": "binned", "binning": {"axes": [axis]}, "values": [_mixed(one) for one in slab.slabs]}


def _mixed(slab: Slab) -> dict[str, Any]:
    """Return one homogeneous material of the slab's thickness with its atoms, electrons and lengths."""
    thickness = sum(slab.values())
    if not thickness:
        return {"thickness": 0.0, "material": {"kind": "vacuum"}}
    amounts = {part: 1e-3 * part.density * mm / part.mass for part, mm in slab.items()}  # mol/mm²
    atoms = sum(amounts.values())
    electrons = sum(part.charge * amount for part, amount in amounts.items())
    excitation = sum(part.charge * amount * math.log(part.excitation) for part, amount in amounts.items())
    return {
        "thickness": thickness,
        "material": {
            "kind": "material",
            "radiation_length": thickness / radiation_lengths(slab),
            "interaction_length": thickness / interaction_lengths(slab),
            "relative_atomic_mass": sum(part.mass * amount for part, amount in amounts.items()) / atoms,
            "atomic_number": electrons / atoms,
            "molar_density": atoms / thickness,
            "molar_electron_density": electrons / thickness,
            "mean_excitation_energy": math.exp(excitation / electrons),
        },
    }
