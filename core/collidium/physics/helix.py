"""Helices of charged particles in a field along z, from particles and from tracks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import BENDING, FIELD_TESLA
from collidium.physics.kinematics import pt
from collidium.physics.ragged import Ragged

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Helix:
    """Helices, as arrays of shape (helices,); those of neutral particles are straight lines.

    Parameters
    ----------
    x, y, z
        A point of each helix, mm.
    phi
        Azimuth of the direction at that point, rad.
    curvature
        Change of ``phi`` per mm of the transverse arc; positive is anticlockwise, seen from positive z.
    cot_theta
        Change of z per mm of the transverse arc.

    Examples
    --------
    In 3 T, a particle with charge 1 e and 0.9 GeV moves clockwise on a circle with a radius of 1 m:

    >>> helix = Helix.from_particles(
    ...     {"px": 0.9, "py": 0.0, "pz": 0.0, "vx": 0.0, "vy": 0.0, "vz": 0.0, "charge": 1.0}
    ... )
    >>> helix.points(np.array([0.0, 1000 * np.pi / 2])).round(-1).tolist()
    [[[0.0, 0.0, 0.0], [1000.0, -1000.0, 0.0]]]
    """

    x: Floats
    y: Floats
    z: Floats
    phi: Floats
    curvature: Floats
    cot_theta: Floats

    @classmethod
    def from_particles(cls, particles: Any, field: float = FIELD_TESLA) -> Self:
        """Return the helices of particles, starting at their vertices.

        Parameters
        ----------
        particles
            A table with ``px``, ``py``, ``pz`` (GeV), ``vx``, ``vy``, ``vz`` (mm) and ``charge`` (e).
        field
            Tesla, along z.
        """
        names = ("px", "py", "pz", "vx", "vy", "vz", "charge")
        px, py, pz, x, y, z, charge = (_flat(particles[name]) for name in names)
        transverse = np.maximum(np.hypot(px, py), 1e-9)
        return cls(x, y, z, np.arctan2(py, px), -BENDING * field * charge / transverse, pz / transverse)

    @classmethod
    def from_tracks(cls, tracks: Any, field: float = FIELD_TESLA) -> Self:
        """Return the helices of tracks, starting at their perigees.

        Parameters
        ----------
        tracks
            A table with ``d0``, ``z0`` (mm), ``phi``, ``theta`` (rad) and ``qop`` (1/GeV), as in ACTS: the
            perigee is at d0 times the direction to the left of the track, seen from positive z.
        field
            Tesla, along z.
        """
        d0, z0, phi, theta, qop = (_flat(tracks[name]) for name in ("d0", "z0", "phi", "theta", "qop"))
        transverse = pt({"theta": theta, "qop": qop})
        curvature = -BENDING * field * np.sign(qop) / transverse
        return cls(-d0 * np.sin(phi), d0 * np.cos(phi), z0, phi, curvature, 1 / np.tan(theta))

    def points(self, arcs: npt.ArrayLike) -> Floats:
        """Return points after transverse arcs.

        Parameters
        ----------
        arcs
            mm, of shape (points,) for all helices or (helices, points); negative arcs go backwards.

        Returns
        -------
        numpy.ndarray, shape (helices, points, 3)
            x, y and z, mm.
        """
        arc = np.atleast_2d(np.asarray(arcs, np.float64))
        x, y, z, phi, curvature, cot_theta = (
            np.atleast_1d(getattr(self, name))[:, None] for name in self.__slots__
        )
        half = curvature * arc / 2
        chord = arc * np.sinc(half / np.pi)
        return np.stack(
            np.broadcast_arrays(
                x + chord * np.cos(phi + half), y + chord * np.sin(phi + half), z + arc * cot_theta
            ),
            axis=-1,
        )

    def perigee(self) -> tuple[Floats, Floats, Floats]:
        """Return d0, z0 (mm) and phi (rad) at the closest approach to the z axis within half a turn."""
        left_x, left_y = -np.sin(self.phi), np.cos(self.phi)
        curved = np.abs(self.curvature) > 1e-9
        radius = 1.0 / np.where(curved, self.curvature, 1.0)
        centre_x, centre_y = self.x + radius * left_x, self.y + radius * left_y
        side = np.sign(radius)
        there = np.where(curved, np.arctan2(-side * centre_x, side * centre_y), self.phi)
        turn = np.remainder(there - self.phi + np.pi, 2 * np.pi) - np.pi
        arc = np.where(curved, turn * radius, self.x * -left_y + self.y * left_x)
        d0 = np.where(curved, side * np.hypot(centre_x, centre_y) - radius, self.x * left_x + self.y * left_y)
        return d0, self.z + arc * self.cot_theta, there


def _flat(column: Any) -> Floats:
    return np.asarray(column.values if isinstance(column, Ragged) else column, np.float64)
