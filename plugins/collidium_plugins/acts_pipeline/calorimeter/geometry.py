"""Position and material of the calorimeters, and the flight of particles to and through them.

Source: the public description of the Open Data Detector. Calorimeters are polygons of sixteen sides, with a
face at every multiple of π/8. Particles fly on a helix in the field of the solenoid, and straight on from
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium.contracts import FIELD_TESLA
from collidium_plugins.acts_pipeline.generation.record import LIGHT

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
    #: Energy that a minimum-ionising particle leaves in a layer, and the mean and the most probable energy
    #: in the layer's sensor.
    loss: float
    mean: float
    peak: float
    #: Energy in the sensors over energy of the particle: of electrons, and of the part of a hadron's shower
    #: that is none of photons.
    electrons: float
    hadrons: float


@dataclass(frozen=True, slots=True)
class Region:
    """A polygon around the beams, or one on either side. Lengths in mm.

    Its inner and outer apothem, the ``|z|`` where it begins and ends, and its mean radiation and interaction
    length.
    """

    inner: float
    outer: float
    begin: float
    end: float
    radiation: float
    interaction: float
    code: int
    layers: Layers


#: Tungsten and silicon of 0.5 mm; the fraction of electrons is that of Geant4 with this stack.
ECAL: Final = Layers(48, 5.05, 2.4, 5.1, 5.46e-3, 0.194e-3, 0.144e-3, electrons=0.0264, hadrons=0.0240)
#: Steel and polystyrene of 3 mm.
HCAL: Final = Layers(36, 51.0, 47.5, 30.0, 46.7e-3, 0.601e-3, 0.500e-3, electrons=0.0112, hadrons=0.0108)

_NOTHING: Final = Layers(0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, electrons=1.0, hadrons=1.0)

#: The solenoid, and the calorimeters in the order in which a particle from the tracker may meet them. Codes
#: are those of column ``detector``, of the barrel or the negative endcap.
REGIONS: Final = (
    Region(1160.0, 1200.0, 0.0, 3000.0, 88.96, 388.0, 0, _NOTHING),
    Region(1250.0, 1492.4, 0.0, 3050.0, 9.28, 191.0, 10, ECAL),
    Region(315.0, 1471.2, 3200.0, 3442.4, 9.28, 191.0, 9, ECAL),
    Region(1600.0, 3436.0, 0.0, 3450.0, 22.4, 207.0, 13, HCAL),
    Region(355.0, 3370.0, 3600.0, 5436.0, 22.4, 207.0, 12, HCAL),
)
ECAL_RADIUS: Final = REGIONS[1].inner
#: mm between an endcap's sensors and the edge of their sector.
SECTOR_GAP: Final = 2.5
SIDES: Final = 16
_ANGLES: Final = 2 * np.pi / SIDES * np.arange(SIDES)
#: Of each side, shape (sides, 2).
NORMALS: Final = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)

#: The field fills a cylinder of this radius and half length, mm.
FIELD_RADIUS: Final = 1160.0
FIELD_LENGTH: Final = 3000.0
#: A charge of e with 1 GeV across a field of 1 T turns by so much in a mm.
_TURN: Final = LIGHT * 1e-6
#: Particles that curl for longer than this (mm) count as stopped.
_FARTHEST: Final = 20_000.0


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Particles that leave the field; arrays have one entry per particle."""

    #: Which of the particles.
    index: Integers
    #: Place, mm, shape (arrivals, 3); direction of flight, unit vectors; time, ns.
    place: Floats
    direction: Floats
    time: Floats
    #: Distance along the line of flight to where it enters and leaves each of ``REGIONS``, mm, shape
    #: (arrivals, regions); the same where it does not meet one.
    enters: Floats
    leaves: Floats

    def sensors(self, region: int) -> tuple[Floats, Floats]:
        """Distances to the sensors of a region, infinite where they are not met; and steepness of incidence.

        Shapes (arrivals, layers) and (arrivals,); the steepness is the cosine to the sensors' normal.
        """
        where = REGIONS[region]
        layers = where.layers
        if where.begin:
            face, begin, rise = where.begin, np.abs(self.place[:, 2]), np.abs(self.direction[:, 2])
        else:
            entry = self.place + self.enters[:, region, None] * self.direction
            normal = NORMALS[sectors(entry[:, 0], entry[:, 1])]
            face = where.inner
            begin, rise = ((vector[:, :2] * normal).sum(axis=1) for vector in (self.place, self.direction))
        rise = np.maximum(rise, 0.05)
        planes = face + layers.sensor + layers.pitch * np.arange(layers.number)
        met = (planes - begin[:, None]) / rise[:, None]
        inside = (met > self.enters[:, region, None]) & (met < self.leaves[:, region, None])
        return np.where(inside, met, np.inf), rise


def sectors(x: Floats, y: Floats) -> Integers:
    """The number of the side of the polygon at each place."""
    return np.rint(np.arctan2(y, x) * (SIDES / (2 * np.pi))).astype(np.int64) % SIDES


def fly(charge: Floats, momentum: Floats, vertex: Floats, time: Floats, energy: Floats) -> Arrivals:
    """Fly particles of ``momentum`` (GeV, shape (particles, 3)) from ``vertex`` (mm) and ``time`` (ns).

    Excludes particles from outside the barrel's face, those that curl up in it, and those that miss the
    calorimeters.
    """
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    inside = np.hypot(vertex[:, 0], vertex[:, 1]) < ECAL_RADIUS
    index = np.flatnonzero(inside & (pt > 0))
    pt, momentum, vertex = pt[index], momentum[index], vertex[index]
    angle = np.arctan2(momentum[:, 1], momentum[:, 0])
    bend = -charge[index] * _TURN * FIELD_TESLA / pt
    slope = momentum[:, 2] / pt

    to_barrel = _to_radius(vertex[:, 0], vertex[:, 1], angle, bend)
    with np.errstate(divide="ignore"):
        to_endcap = np.maximum((np.copysign(FIELD_LENGTH, slope) - vertex[:, 2]) / slope, 0.0)
    path = np.minimum(np.minimum(to_barrel, to_endcap), _FARTHEST)
    path[np.hypot(vertex[:, 0], vertex[:, 1]) >= FIELD_RADIUS] = 0.0
    x, y, heading = _along(vertex[:, 0], vertex[:, 1], angle, bend, path)
    norm = np.hypot(1.0, slope)
    place = np.stack([x, y, vertex[:, 2] + path * slope], axis=1)
    direction = np.stack([np.cos(heading) / norm, np.sin(heading) / norm, slope / norm], axis=1)
    speed = np.minimum(pt * norm / energy[index], 1.0) * LIGHT
    enters, leaves = _crossings(place, direction)
    meets = (path * norm < _FARTHEST) & (leaves > enters)[:, 1:].any(axis=1)
    arrival = time[index] + path * norm / speed
    return Arrivals(
        index[meets], place[meets], direction[meets], arrival[meets], enters[meets], leaves[meets]
    )


def _crossings(place: Floats, direction: Floats) -> tuple[Floats, Floats]:
    """Where straight lines enter and leave the regions."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = direction[:, :2] @ NORMALS.T
        height = place[:, :2] @ NORMALS.T

        def to_apothem(apothem: float) -> Floats:
            distance: Floats = np.where(rise > 0, (apothem - height) / rise, np.inf).min(axis=1)
            return distance

        def to_length(length: float) -> Floats:
            distance: Floats = (length - place[:, 2] * np.sign(direction[:, 2])) / np.abs(direction[:, 2])
            return distance

        enters = np.stack(
            [
                np.maximum(to_apothem(one.inner), to_length(one.begin) if one.begin else 0.0)
                for one in REGIONS
            ],
            axis=1,
        )
        leaves = np.stack([np.minimum(to_apothem(one.outer), to_length(one.end)) for one in REGIONS], axis=1)
    enters, leaves = np.clip(enters, 0.0, _FARTHEST), np.clip(leaves, 0.0, _FARTHEST)
    return enters, np.maximum(enters, leaves)


def _to_radius(x: Floats, y: Floats, angle: Floats, bend: Floats) -> Floats:
    """Transverse path to the field's radius, infinite for circles that do not reach it.

    With the circle's centre at distance d and angle b, the radius squared is
    d² + 1/bend² + 2 d sin(heading - b) / bend.
    """
    along = x * np.cos(angle) + y * np.sin(angle)
    straight = -along + np.sqrt(np.maximum(along**2 + FIELD_RADIUS**2 - x**2 - y**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        centre_x, centre_y = x - np.sin(angle) / bend, y + np.cos(angle) / bend
        distance, towards = np.hypot(centre_x, centre_y), np.arctan2(centre_y, centre_x)
        sine = bend * (FIELD_RADIUS**2 - distance**2 - 1 / bend**2) / (2 * distance)
        rising = np.arcsin(sine)
        turn = 2 * np.pi / np.abs(bend)
        ways = [np.mod((towards + way - angle) / bend, turn) for way in (rising, np.pi - rising)]
        curved = np.where(np.abs(sine) <= 1, np.minimum(*ways), np.inf)
    return np.where(bend == 0, straight, curved)


def _along(x: Floats, y: Floats, angle: Floats, bend: Floats, path: Floats) -> tuple[Floats, Floats, Floats]:
    """Place and heading after a transverse path."""
    half = bend * path / 2
    chord = path * np.sinc(half / np.pi)
    return x + chord * np.cos(angle + half), y + chord * np.sin(angle + half), angle + 2 * half
