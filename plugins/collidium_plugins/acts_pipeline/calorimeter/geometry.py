"""Position and material of the calorimeters, and the flight of particles to them: a helix, no material."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.detector.layout import FIELD_TESLA
from collidium_plugins.acts_pipeline.generation.record import LIGHT


@dataclass(frozen=True, slots=True)
class Material:
    """Layers of one calorimeter; lengths in mm along the direction of flight."""

    layers: int
    #: Thickness of a layer, and the size of its cells across.
    layer: float
    cell: float
    radiation_length: float
    interaction_length: float

    @property
    def depth(self) -> float:
        """Thickness of all layers."""
        return self.layers * self.layer


#: Silicon and tungsten, 26 radiation lengths; scintillator and steel, 10 interaction lengths.
ECAL: Final = Material(layers=48, layer=5.2, cell=5.1, radiation_length=9.6, interaction_length=250.0)
HCAL: Final = Material(layers=36, layer=48.0, cell=30.0, radiation_length=18.0, interaction_length=173.0)

#: Radius of the barrel's face, half its length (which is where the endcaps begin), and their hole; mm.
ECAL_RADIUS: Final = 1250.0
ECAL_LENGTH: Final = 3200.0
HOLE: Final = 315.0
#: Where the hadronic calorimeter begins.
HCAL_RADIUS: Final = 1750.0
HCAL_LENGTH: Final = 3600.0


Floats = npt.NDArray[np.float64]

#: A charge of e with 1 GeV across a field of 1 T turns by so much in a mm.
_TURN: Final = LIGHT * 1e-6
#: Particles that curl for longer than this (mm) count as stopped.
_FARTHEST: Final = 20_000.0


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Particles at the calorimeter's face; arrays have one entry per particle that arrives."""

    #: Which of the particles.
    index: npt.NDArray[np.int64]
    #: Place, mm, shape (arrivals, 3); direction of flight, unit vectors; time, ns.
    place: Floats
    direction: Floats
    time: Floats
    #: -1 negative endcap, 0 barrel, 1 positive endcap.
    side: npt.NDArray[np.int64]


def fly(charge: Floats, momentum: Floats, vertex: Floats, time: Floats, energy: Floats) -> Arrivals:
    """Fly particles of ``momentum`` (GeV, shape (particles, 3)) from ``vertex`` (mm) and ``time`` (ns).

    Excludes particles from outside the tracker's volume, those that curl up in it, and those into the hole.
    """
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    inside = (np.hypot(vertex[:, 0], vertex[:, 1]) < ECAL_RADIUS) & (np.abs(vertex[:, 2]) < ECAL_LENGTH)
    index = np.flatnonzero(inside & (pt > 0))
    pt, momentum, vertex = pt[index], momentum[index], vertex[index]
    angle = np.arctan2(momentum[:, 1], momentum[:, 0])
    bend = -charge[index] * _TURN * FIELD_TESLA / pt
    slope = momentum[:, 2] / pt

    to_barrel = _to_radius(vertex[:, 0], vertex[:, 1], angle, bend)
    with np.errstate(divide="ignore"):
        to_endcap = (np.copysign(ECAL_LENGTH, slope) - vertex[:, 2]) / slope
    path = np.minimum(np.minimum(to_barrel, to_endcap), _FARTHEST)
    side = np.where(to_barrel <= to_endcap, 0, np.sign(slope)).astype(np.int64)

    x, y, heading = _along(vertex[:, 0], vertex[:, 1], angle, bend, path)
    whole = path * np.hypot(1.0, slope)
    stays = (whole < _FARTHEST) & ((side == 0) | (np.hypot(x, y) > HOLE))
    norm = np.hypot(1.0, slope)
    place = np.stack([x, y, vertex[:, 2] + path * slope], axis=1)
    direction = np.stack([np.cos(heading) / norm, np.sin(heading) / norm, slope / norm], axis=1)
    speed = np.minimum(pt * norm / energy[index], 1.0) * LIGHT
    arrival = time[index] + whole / speed
    return Arrivals(index[stays], place[stays], direction[stays], arrival[stays], side[stays])


def _to_radius(x: Floats, y: Floats, angle: Floats, bend: Floats) -> Floats:
    """Transverse path to the barrel's radius, infinite for circles that do not reach it.

    With the circle's centre at distance d and angle b, the radius squared is
    d² + 1/bend² + 2 d sin(heading - b) / bend.
    """
    along = x * np.cos(angle) + y * np.sin(angle)
    straight = -along + np.sqrt(along**2 + ECAL_RADIUS**2 - x**2 - y**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre_x, centre_y = x - np.sin(angle) / bend, y + np.cos(angle) / bend
        distance, towards = np.hypot(centre_x, centre_y), np.arctan2(centre_y, centre_x)
        sine = bend * (ECAL_RADIUS**2 - distance**2 - 1 / bend**2) / (2 * distance)
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
