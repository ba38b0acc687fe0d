"""Kinematics, helices, truth and calibration: functions of the columns of tables, for many events at once.

::

    from collidium import physics

    physics.pt(batch["tracks"]), physics.eta(batch["tracks"])        # Ragged, like the columns
    physics.nearest_jet(batch["tracks"], batch["jets"])
    physics.Helix.from_particles(batch["particles"]).points(arcs)
    physics.calibrated_energy(batch["calo_hits"])

:mod:`collidium.physics.constants` has units and constants, :mod:`collidium.physics.plots` has plots.
"""

from collidium.physics.helix import Helix
from collidium.physics.kinematics import (
    calibrated_energy,
    calibration,
    delta_phi,
    delta_r,
    eta,
    module_id,
    nearest_jet,
    phi,
    pt,
    r,
)
from collidium.physics.ragged import Ragged, columns
from collidium.physics.truth import Finder, primary_ancestor, subsample_pileup

__all__ = [
    "Finder",
    "Helix",
    "Ragged",
    "calibrated_energy",
    "calibration",
    "columns",
    "delta_phi",
    "delta_r",
    "eta",
    "module_id",
    "nearest_jet",
    "phi",
    "primary_ancestor",
    "pt",
    "r",
    "subsample_pileup",
]
