"""A particle gun."""

from __future__ import annotations

from typing import Final

import numpy as np

from collidium_plugins.acts_pipeline.generation.interaction import Interaction

#: GeV; Particle Data Group.
_MUON_MASS: Final = 0.1056583755
_PT: Final = (1.0, 100.0)
_ETA: Final = (-3.0, 3.0)


def muon(random: np.random.Generator) -> Interaction:
    """One muon of either charge at the origin; pT even from 1 to 100 GeV, η even from -3 to 3, any φ."""
    charge = random.choice((-1, 1))
    pt, eta, phi = random.uniform(*_PT), random.uniform(*_ETA), random.uniform(-np.pi, np.pi)
    momentum = (pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta))
    energy = np.hypot(pt * np.cosh(eta), _MUON_MASS)
    return Interaction.from_rows(
        [(-13 * charge, charge, _MUON_MASS, *momentum, energy, 0.0, 0.0, 0.0, 0.0, True, -1)]
    )
