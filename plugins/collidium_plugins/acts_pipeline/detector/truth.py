"""The majority particle of tracks, and the perigee of particles: pure functions of arrays."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.events import Floats, Particles

#: Transverse momentum in GeV is this, times the charge in e, the field in tesla and the radius in mm.
_BENDING: Final = 0.299792458e-3


def majority(owners: npt.NDArray[np.uint64], counts: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint64]:
    """For each track the particle that owns most of its hits; of several the one with the smallest id.

    ``owners`` are those of the hits of all tracks, one track after the other; ``counts`` says how many hits
    each has, at least one.
    """
    track = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((owners, track))
    track, owners = track[order], owners[order]
    begins = np.ones(len(owners), np.bool_)
    begins[1:] = (track[1:] != track[:-1]) | (owners[1:] != owners[:-1])
    group = np.flatnonzero(begins)
    hits = np.diff(group, append=len(owners))
    best = group[np.lexsort((owners[group], -hits, track[group]))]
    return owners[best[np.unique(track[best], return_index=True)[1]]]


def perigee(particles: Particles, field: float) -> tuple[Floats, Floats]:
    """d0 and z0 of particles, mm: of the point of the helix that is nearest to the z axis.

    ``field`` in tesla, along z. d0 has the sign that ACTS gives it: the point lies at d0 times the direction
    to the left of the particle's flight there, seen from positive z. Neutral particles fly straight.
    """
    names = ("px", "py", "pz", "vx", "vy", "vz", "charge")
    px, py, pz, x, y, z, charge = (np.asarray(getattr(particles, name), np.float64) for name in names)
    pt = np.maximum(np.hypot(px, py), 1e-9)
    left_x, left_y = -py / pt, px / pt
    curvature = -_BENDING * field * charge / pt  # change of direction for each mm of the arc
    curved = np.abs(curvature) > 1e-9
    radius = 1.0 / np.where(curved, curvature, 1.0)
    centre_x, centre_y = x + radius * left_x, y + radius * left_y
    distance = np.hypot(centre_x, centre_y)
    side = np.sign(radius)
    there = np.arctan2(-side * centre_x, side * centre_y)
    turn = np.remainder(there - np.arctan2(py, px) + np.pi, 2.0 * np.pi) - np.pi
    arc = np.where(curved, turn * radius, -(x * px + y * py) / pt)
    d0 = np.where(curved, side * distance - radius, x * left_x + y * left_y)
    return d0.astype(np.float32), (z + arc * pz / pt).astype(np.float32)
