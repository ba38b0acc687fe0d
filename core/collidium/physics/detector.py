"""Modules of the tracker and cells of the calorimeters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import ECAL_CODE, SAMPLING
from collidium.physics.ragged import Ragged

#: Where ACTS's geometry ids have the volume, the layer and the sensitive surface.
_SHIFTS: Final = {"volume_id": 56, "layer_id": 36, "surface_id": 8}


def module_id(hits: Any) -> Any:
    """Return the module of each hit, as ACTS's geometry id (uint64).

    Parameters
    ----------
    hits
        A table with ``volume_id``, ``layer_id`` and ``surface_id``.
    """
    columns = [hits[name] for name in _SHIFTS]
    parts = [of.values if isinstance(of, Ragged) else np.asarray(of) for of in columns]
    ids = np.zeros(parts[0].shape, np.uint64)
    for part, shift in zip(parts, _SHIFTS.values(), strict=True):
        ids |= part.astype(np.uint64) << np.uint64(shift)
    return columns[0].like(ids) if isinstance(columns[0], Ragged) else ids


def calibration(detector: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the energy of particles over that in active layers, by the code of a cell's calorimeter.

    Parameters
    ----------
    detector : array_like of int
        Column ``detector`` of ``calo_hits``.

    Returns
    -------
    numpy.ndarray, of the shape of ``detector``
        NaN for codes of no calorimeter.

    Examples
    --------
    >>> calibration([9, 10, 13, 8]).tolist()
    [38.7, 37.5, 45.0, nan]
    """
    region = np.asarray(detector).astype(np.int64) - ECAL_CODE
    known = (region >= 0) & (region < len(SAMPLING))
    return np.where(known, np.array(SAMPLING)[np.where(known, region, 0)], np.nan)


def calibrated_energy(calo_hits: Any) -> Any:
    """Return the energy of the particles in each cell, GeV.

    Parameters
    ----------
    calo_hits
        A table with ``detector`` and ``total_energy``.
    """
    detector, energy = calo_hits["detector"], calo_hits["total_energy"]
    if isinstance(energy, Ragged):
        return energy * energy.like(calibration(detector.values))
    return energy * calibration(detector)
