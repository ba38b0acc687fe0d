"""Calorimeter deposits, which ACTS's fast simulation lacks: a small parametric model.

The calorimeters stand where those of the Open Data Detector do, as cylinders and disks. Each particle flies
from the tracker to them on its helix (:mod:`flight`), loses its energy there in spots along a shower
(:mod:`showers`), and spots add up in cells (:mod:`cells`). docs/acts-pipeline.md has the formulas
and what they leave out.
"""

from collidium_plugins.acts_pipeline.calorimeter.cells import CaloHits
from collidium_plugins.acts_pipeline.calorimeter.model import deposits

__all__ = ["CaloHits", "deposits"]
