"""Helices around the z axis, in mm, T and GeV."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidium.contracts import FIELD_TESLA
from collidium_tasks.tracking.baselines import Floats

#: Transverse momentum over radius, in GeV/mm: p_T = 0.299792458 B R for GeV, T and m and charge 1
#: (Review of Particle Physics, "Particle detectors at accelerators", momentum in a magnetic field).
GEV_PER_MM = 0.299792458e-3 * FIELD_TESLA

#: Curvature in 1/mm below which a circle counts as straight; R = 1000 km, far beyond any momentum here.
STRAIGHT = 1e-9


@dataclass(frozen=True, slots=True)
class Helix:
    """A circle in the transverse plane and a line of z over the arc, which begins at some point of it.

    ``turn`` is +1 where the azimuth around the centre grows along the track, else -1; ``azimuth`` and ``z``
    are those of arc 0, ``cot_theta`` is the slope of z over the transverse arc.
    """

    centre_x: float
    centre_y: float
    radius: float
    turn: float
    azimuth: float
    z: float
    cot_theta: float

    @property
    def sin_theta(self) -> float:
        return float(1 / np.hypot(1, self.cot_theta))

    @property
    def momentum(self) -> float:
        """Momentum of a particle of charge 1, in GeV."""
        return GEV_PER_MM * self.radius / self.sin_theta

    @property
    def transverse_momentum(self) -> float:
        return GEV_PER_MM * self.radius

    def arc_at(self, x: Floats, y: Floats) -> Floats:
        """Transverse arc, 0 to once around, at which the helix passes nearest to points; shape as x."""
        azimuth = np.arctan2(y - self.centre_y, x - self.centre_x)
        arc: Floats = self.radius * np.remainder(self.turn * (azimuth - self.azimuth), 2 * np.pi)
        return arc

    def arc_at_z(self, z: Floats) -> Floats:
        """Transverse arc at which the helix crosses planes of constant z; shape as z."""
        slope = self.cot_theta if abs(self.cot_theta) > STRAIGHT else STRAIGHT
        return (z - self.z) / slope

    def at(self, arc: Floats) -> tuple[Floats, Floats, Floats]:
        """x, y and z at transverse arcs."""
        azimuth = self.azimuth + self.turn * arc / self.radius
        return (
            self.centre_x + self.radius * np.cos(azimuth),
            self.centre_y + self.radius * np.sin(azimuth),
            self.z + self.cot_theta * arc,
        )


def fit_helix(points: Floats, across: Floats, sigma_z: Floats) -> Helix:
    """The helix through points in the order in which it passes them; its arc begins at the last.

    ``points`` has shape (n, 3), n of 3 or more; ``across`` and ``sigma_z`` are their uncertainties in the
    transverse plane and in z, shape (n,). No step may be longer than half a turn.
    """
    centre, radius = fit_circle(points[:, :2], across)
    azimuth = np.arctan2(points[:, 1] - centre[1], points[:, 0] - centre[0])
    steps = np.remainder(np.diff(azimuth) + np.pi, 2 * np.pi) - np.pi
    turn = 1.0 if steps.sum() >= 0 else -1.0
    arc = radius * turn * (np.append(0.0, np.cumsum(steps)) - steps.sum())
    z, cot_theta = fit_line(arc, points[:, 2], sigma_z)
    return Helix(float(centre[0]), float(centre[1]), radius, turn, float(azimuth[-1]), z, cot_theta)


def fit_circle(points: Floats, sigma: Floats) -> tuple[Floats, float]:
    """Centre, shape (2,), and radius of the circle through points of shape (n, 2), n of 3 or more.

    Taubin's algebraic fit by singular value decomposition, with weights (G. Taubin, IEEE Trans. PAMI 13
    (1991) 1115; N. Chernov, Circular and Linear Regression, 2010, section 5.10).
    """
    weight = 1 / sigma**2
    mean = weight @ points / weight.sum()
    offset = points - mean
    square = (offset**2).sum(axis=1)
    mean_square = float(weight @ square / weight.sum())
    scaled = (square - mean_square) / (2 * np.sqrt(mean_square))
    rows = np.column_stack([scaled, offset]) / sigma[:, None]
    bend, *direction = np.linalg.svd(rows)[2][2]
    bend = bend / (2 * np.sqrt(mean_square))
    if abs(bend) < STRAIGHT:
        bend = np.copysign(STRAIGHT, bend)
    radius = np.sqrt(np.square(direction).sum() + 4 * mean_square * bend**2) / abs(2 * bend)
    return mean - np.array(direction) / (2 * bend), float(radius)


def fit_line(at: Floats, values: Floats, sigma: Floats) -> tuple[float, float]:
    """Value at 0 and slope of the straight line through ``values`` at the places ``at``; shapes (n,)."""
    weight = 1 / sigma**2
    mean_at, mean_value = weight @ at / weight.sum(), weight @ values / weight.sum()
    spread = max(float(weight @ (at - mean_at) ** 2), 1e-12)
    slope = float(weight @ ((at - mean_at) * (values - mean_value))) / spread
    return float(mean_value - slope * mean_at), slope
