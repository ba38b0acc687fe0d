"""Momenta, directions and positions, geometry ids of modules, and calibrated energies of cells.

Functions accept anything with columns by name: tables of a batch, :func:`~collidium.physics.columns` of an
arrow table, dicts of arrays, data frames, awkward arrays of records. Results have the type of the columns.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import ECAL_CODE, SAMPLING
from collidium.physics.ragged import Ragged

#: Minimum transverse component, which keeps pseudorapidities along the beams finite.
_TINY = 1e-30
#: Lowest bits of volume, layer and sensitive surface in ACTS's geometry ids.
_SHIFTS: Final = {"volume_id": 56, "layer_id": 36, "surface_id": 8}


def pt(table: Any) -> Any:
    """Return transverse momenta, GeV, from ``pt``, from ``theta`` and ``qop``, or from ``px`` and ``py``.

    Examples
    --------
    >>> pt({"px": np.array([3.0]), "py": np.array([4.0])}).tolist()
    [5.0]
    """
    if _has(table, "pt"):
        return table["pt"]
    if _has(table, "qop"):
        return np.sin(table["theta"]) / np.abs(table["qop"])
    return np.hypot(table["px"], table["py"])


def eta(table: Any) -> Any:
    """Return pseudorapidities from ``eta``, from ``theta``, from momenta, or from positions.

    They are 0 without momentum, and above 60 but finite along the beams.
    """
    if _has(table, "eta"):
        return table["eta"]
    if _has(table, "theta"):
        return np.arcsinh(1 / np.tan(table["theta"]))
    x, y, z = _vector(table)
    return np.arcsinh(z / np.maximum(np.hypot(x, y), _TINY))


def phi(table: Any) -> Any:
    """Return azimuths in [-π, π], rad, from ``phi``, from momenta, or from positions."""
    if _has(table, "phi"):
        return table["phi"]
    x, y, _ = _vector(table)
    return np.arctan2(y, x)


def r(table: Any) -> Any:
    """Return distances from the z axis, mm, of hits and cells, or of the vertices of particles."""
    x, y = ("x", "y") if _has(table, "x") else ("vx", "vy")
    return np.hypot(table[x], table[y])


def delta_phi(one: Any, other: Any) -> Any:
    """Return differences of azimuths, in [-π, π)."""
    return np.remainder(one - other + np.pi, 2 * np.pi) - np.pi


def delta_r(one: Any, other: Any) -> Any:
    """Return distances in η and φ between the rows of two tables."""
    return np.hypot(eta(one) - eta(other), delta_phi(phi(one), phi(other)))


def nearest_jet(tracks: Any, jets: Any, radius: float = 0.4) -> Ragged:
    """Return the index of the nearest jet in its event for each track, or -1 if none is within the radius.

    Parameters
    ----------
    tracks, jets
        Tables of ragged columns with directions, of the same events: ``batch["tracks"]``, ``batch["jets"]``.
    radius
        Maximum distance in η and φ, exclusive.
    """
    eta_t, phi_t, eta_j, phi_j = eta(tracks), phi(tracks), eta(jets), phi(jets)
    choices = eta_j.lengths[eta_t.event]
    begins = np.cumsum(choices) - choices
    track = np.repeat(np.arange(len(choices)), choices)
    place = np.arange(len(track)) - begins[track]
    jet = place + eta_j.offsets[eta_t.event[track]]
    distance = np.hypot(
        eta_t.values[track] - eta_j.values[jet], delta_phi(phi_t.values[track], phi_j.values[jet])
    )
    order = np.lexsort((distance, track))  # the first of each track is its nearest
    nearest = np.full(len(choices), -1)
    first = order[begins[choices > 0]]
    nearest[choices > 0] = np.where(distance[first] < radius, place[first], -1)
    return Ragged(nearest, eta_t.offsets)


def _has(table: Any, name: str) -> bool:
    """Return whether there is a column; for awkward arrays, ``in`` would search values."""
    names = getattr(table, "fields", None)
    return name in (table if names is None else names)


def _vector(table: Any) -> tuple[Any, Any, Any]:
    """Return momenta, or else positions."""
    names = ("px", "py", "pz") if _has(table, "px") else ("x", "y", "z")
    x, y, z = (table[name] for name in names)
    return x, y, z


def module_id(hits: Any) -> Any:
    """Return the geometry id of ACTS (uint64) of each hit's module.

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
    """Return the energy of particles over the energy in active layers, by calorimeter.

    Parameters
    ----------
    detector : array_like of int
        Column ``detector`` of ``calo_hits``.

    Returns
    -------
    numpy.ndarray, with the shape of ``detector``
        NaN for other codes.

    Examples
    --------
    >>> calibration([9, 10, 13, 8]).tolist()
    [38.7, 37.5, 45.0, nan]
    """
    region = np.asarray(detector).astype(np.int64) - ECAL_CODE
    known = (region >= 0) & (region < len(SAMPLING))
    return np.where(known, np.array(SAMPLING)[np.where(known, region, 0)], np.nan)


def calibrated_energy(calo_hits: Any) -> Any:
    """Return the calibrated energy of each cell, GeV.

    Parameters
    ----------
    calo_hits
        A table with ``detector`` and ``total_energy``.
    """
    detector, energy = calo_hits["detector"], calo_hits["total_energy"]
    if isinstance(energy, Ragged):
        return energy * energy.like(calibration(detector.values))
    return energy * calibration(detector)
