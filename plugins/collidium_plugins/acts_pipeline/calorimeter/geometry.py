"""Geometry and material of the calorimeters, and extrapolation of particles to and through them.

Source: the public description of the Open Data Detector. Calorimeters are polygons of sixteen sides, with a
face at every multiple of π/8. Particles are on helices in the field of the solenoid, and on straight lines
outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import BENDING, FIELD_TESLA, SPEED_OF_LIGHT

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers of a calorimeter. Lengths in mm, energies in GeV."""

    number: int
    pitch: float
    #: From the front of a layer to the middle of its sensor.
    sensor: float
    cell: float
    #: Energy loss of a minimum-ionising particle in a layer, and its mean and most probable energy loss in
    #: the layer's sensor.
    loss: float
    mean: float
    peak: float
    #: Sampling fraction (energy in sensors over energy of the particle) of electrons, and of the
    #: non-electromagnetic part of hadronic showers.
    electrons: float
    hadrons: float


@dataclass(frozen=True, slots=True)
class Region:
    """A barrel, or a pair of endcaps, with polygonal cross section. Lengths in mm."""

    #: Inner and outer apothem.
    inner: float
    outer: float
    #: Range of ``|z|``.
    begin: float
    end: float
    #: Mean radiation and interaction length.
    radiation: float
    interaction: float
    code: int
    layers: Layers


#: Tungsten and silicon of 0.5 mm; the sampling fraction of electrons is that of Geant4 for this stack.
ECAL: Final = Layers(48, 5.05, 2.4, 5.1, 5.46e-3, 0.194e-3, 0.144e-3, electrons=0.0264, hadrons=0.0240)
#: Steel and polystyrene of 3 mm.
HCAL: Final = Layers(36, 51.0, 47.5, 30.0, 46.7e-3, 0.601e-3, 0.500e-3, electrons=0.0112, hadrons=0.0108)

_NOTHING: Final = Layers(0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, electrons=1.0, hadrons=1.0)

#: The solenoid and the calorimeters, in the order in which particles from the tracker cross them. Codes are
#: those of column ``detector`` for the barrel or the negative endcap.
REGIONS: Final = (
    Region(1160.0, 1200.0, 0.0, 3000.0, 88.96, 388.0, 0, _NOTHING),
    Region(1250.0, 1492.4, 0.0, 3050.0, 9.28, 191.0, 10, ECAL),
    Region(315.0, 1471.2, 3200.0, 3442.4, 9.28, 191.0, 9, ECAL),
    Region(1600.0, 3436.0, 0.0, 3450.0, 22.4, 207.0, 13, HCAL),
    Region(355.0, 3370.0, 3600.0, 5436.0, 22.4, 207.0, 12, HCAL),
)
ECAL_RADIUS: Final = REGIONS[1].inner
#: Distance of an endcap's sensors from the edge of their sector, mm.
SECTOR_GAP: Final = 2.5
SIDES: Final = 16
_ANGLES: Final = 2 * np.pi / SIDES * np.arange(SIDES)
#: Normals of the sides, shape (sides, 2).
NORMALS: Final = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)

#: Radius and half length of the field, mm.
FIELD_RADIUS: Final = 1160.0
FIELD_LENGTH: Final = 3000.0
#: Maximum path in the field, mm: particles that curl for longer count as stopped.
_MAX_PATH: Final = 20_000.0


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Particles at the edge of the field; arrays have one entry per particle."""

    #: Index of the particle.
    index: Integers
    #: Position, mm, and unit vector of flight, shape (arrivals, 3); time, ns.
    position: Floats
    direction: Floats
    time: Floats
    #: Distances along the line of flight at which it enters and leaves each of ``REGIONS``, mm, shape
    #: (arrivals, regions); equal for regions that it misses.
    enters: Floats
    leaves: Floats

    def sensors(self, region: int) -> tuple[Floats, Floats]:
        """Return the distances to the sensors of a region, and the cosine of incidence on them.

        Shapes are (arrivals, layers) and (arrivals,); distances to sensors that are missed are infinite.
        """
        where = REGIONS[region]
        layers = where.layers
        if where.begin:
            face, begin, cosine = where.begin, np.abs(self.position[:, 2]), np.abs(self.direction[:, 2])
        else:
            entry = self.position + self.enters[:, region, None] * self.direction
            normal = NORMALS[sectors(entry[:, 0], entry[:, 1])]
            face = where.inner
            begin, cosine = (
                (vector[:, :2] * normal).sum(axis=1) for vector in (self.position, self.direction)
            )
        cosine = np.maximum(cosine, 0.05)
        planes = face + layers.sensor + layers.pitch * np.arange(layers.number)
        distance = (planes - begin[:, None]) / cosine[:, None]
        inside = (distance > self.enters[:, region, None]) & (distance < self.leaves[:, region, None])
        return np.where(inside, distance, np.inf), cosine


def sectors(x: Floats, y: Floats) -> Integers:
    """Return the number of the polygon's side at each position."""
    return np.rint(np.arctan2(y, x) * (SIDES / (2 * np.pi))).astype(np.int64) % SIDES


def extrapolate(charge: Floats, momentum: Floats, vertex: Floats, time: Floats, energy: Floats) -> Arrivals:
    """Extrapolate particles to the edge of the field.

    Returns only particles that start within the ECal barrel, do not curl up in the field, and hit a
    calorimeter.

    Parameters
    ----------
    charge : numpy.ndarray of float64, shape (particles,)
        In units of e.
    momentum : numpy.ndarray of float64, shape (particles, 3)
        GeV.
    vertex : numpy.ndarray of float64, shape (particles, 3)
        Start of the extrapolation, mm.
    time, energy : numpy.ndarray of float64, shape (particles,)
        At the start, ns and GeV.
    """
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    inside = np.hypot(vertex[:, 0], vertex[:, 1]) < ECAL_RADIUS
    index = np.flatnonzero(inside & (pt > 0))
    pt, momentum, vertex = pt[index], momentum[index], vertex[index]
    angle = np.arctan2(momentum[:, 1], momentum[:, 0])
    curvature = -charge[index] * BENDING * FIELD_TESLA / pt
    slope = momentum[:, 2] / pt

    to_barrel = _to_radius(vertex[:, 0], vertex[:, 1], angle, curvature)
    with np.errstate(divide="ignore"):
        to_endcap = np.maximum((np.copysign(FIELD_LENGTH, slope) - vertex[:, 2]) / slope, 0.0)
    path = np.minimum(np.minimum(to_barrel, to_endcap), _MAX_PATH)
    path[np.hypot(vertex[:, 0], vertex[:, 1]) >= FIELD_RADIUS] = 0.0
    x, y, heading = _along(vertex[:, 0], vertex[:, 1], angle, curvature, path)
    norm = np.hypot(1.0, slope)
    position = np.stack([x, y, vertex[:, 2] + path * slope], axis=1)
    direction = np.stack([np.cos(heading) / norm, np.sin(heading) / norm, slope / norm], axis=1)
    speed = np.minimum(pt * norm / energy[index], 1.0) * SPEED_OF_LIGHT
    enters, leaves = _crossings(position, direction)
    meets = (path * norm < _MAX_PATH) & (leaves > enters)[:, 1:].any(axis=1)
    arrival = time[index] + path * norm / speed
    return Arrivals(
        index[meets], position[meets], direction[meets], arrival[meets], enters[meets], leaves[meets]
    )


def _crossings(position: Floats, direction: Floats) -> tuple[Floats, Floats]:
    """Return the distances at which straight lines enter and leave the regions."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = direction[:, :2] @ NORMALS.T
        height = position[:, :2] @ NORMALS.T

        def to_apothem(apothem: float) -> Floats:
            distance: Floats = np.where(rise > 0, (apothem - height) / rise, np.inf).min(axis=1)
            return distance

        def to_z(z: float) -> Floats:
            distance: Floats = (z - position[:, 2] * np.sign(direction[:, 2])) / np.abs(direction[:, 2])
            return distance

        enters = np.stack(
            [np.maximum(to_apothem(one.inner), to_z(one.begin) if one.begin else 0.0) for one in REGIONS],
            axis=1,
        )
        leaves = np.stack([np.minimum(to_apothem(one.outer), to_z(one.end)) for one in REGIONS], axis=1)
    enters, leaves = np.clip(enters, 0.0, _MAX_PATH), np.clip(leaves, 0.0, _MAX_PATH)
    return enters, np.maximum(enters, leaves)


def _to_radius(x: Floats, y: Floats, angle: Floats, curvature: Floats) -> Floats:
    """Return the transverse path to the radius of the field, infinite for circles that do not reach it.

    With the circle's centre at distance d and azimuth b, the radius squared at a heading is
    d² + 1/curvature² + 2 d sin(heading - b) / curvature.
    """
    along = x * np.cos(angle) + y * np.sin(angle)
    straight = -along + np.sqrt(np.maximum(along**2 + FIELD_RADIUS**2 - x**2 - y**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        centre_x, centre_y = x - np.sin(angle) / curvature, y + np.cos(angle) / curvature
        distance, azimuth = np.hypot(centre_x, centre_y), np.arctan2(centre_y, centre_x)
        sine = curvature * (FIELD_RADIUS**2 - distance**2 - 1 / curvature**2) / (2 * distance)
        rising = np.arcsin(sine)
        turn = 2 * np.pi / np.abs(curvature)
        paths = [np.mod((azimuth + root - angle) / curvature, turn) for root in (rising, np.pi - rising)]
        curved = np.where(np.abs(sine) <= 1, np.minimum(*paths), np.inf)
    return np.where(curvature == 0, straight, curved)


def _along(
    x: Floats, y: Floats, angle: Floats, curvature: Floats, path: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return x, y and heading after a transverse path."""
    half = curvature * path / 2
    chord = path * np.sinc(half / np.pi)
    return x + chord * np.cos(angle + half), y + chord * np.sin(angle + half), angle + 2 * half
