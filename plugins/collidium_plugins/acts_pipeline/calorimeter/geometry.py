"""Where the calorimeters are, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Material:
    """Layers of one calorimeter; lengths in mm along the direction of flight."""

    layers: int
    #: Thickness of a layer, and the size of its cells across.
    layer: float
    cell: float
    radiation_length: float
    interaction_length: float

    @property
    def depth(self) -> float:
        """Thickness of all layers."""
        return self.layers * self.layer


#: Silicon and tungsten, 26 radiation lengths; scintillator and steel, 10 interaction lengths.
ECAL: Final = Material(layers=48, layer=5.2, cell=5.1, radiation_length=9.6, interaction_length=250.0)
HCAL: Final = Material(layers=36, layer=48.0, cell=30.0, radiation_length=18.0, interaction_length=173.0)

#: Radius of the barrel's face, half its length (which is where the endcaps begin), and their hole; mm.
ECAL_RADIUS: Final = 1250.0
ECAL_LENGTH: Final = 3200.0
HOLE: Final = 315.0
#: Where the hadronic calorimeter begins.
HCAL_RADIUS: Final = 1750.0
HCAL_LENGTH: Final = 3600.0
