"""Positions and sizes of the modules of the tracker, which are those of the Open Data Detector.

Source of the dimensions: the XML files for pixels, short and long strips of the Open Data Detector
(https://gitlab.cern.ch/acts/OpenDataDetector). Volume and layer ids are those of the hosted datasets. Lengths
are in mm, angles in rad.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from collidium.contracts import FIELD_TESLA as FIELD_TESLA

Vector = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Module:
    """A flat sensor: centre and directions of the local axes. Long strips measure along x only.

    It is a rectangle (half lengths x, y) or a trapezoid (half lengths x at -y, x at +y, and y).
    """

    centre: Vector
    x: Vector
    y: Vector
    half_lengths: tuple[float, ...]

    @property
    def normal(self) -> Vector:
        (a, b, c), (d, e, f) = self.x, self.y
        return b * f - c * e, c * d - a * f, a * e - b * d


@dataclass(frozen=True, slots=True)
class Layer:
    """Modules at about one radius (barrel) or at about one z (disc)."""

    layer_id: int
    barrel: bool
    modules: tuple[Module, ...]
    #: Number of modules in φ and z (barrel) or in r and φ (disc), for the navigation's lookup.
    bins: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Volume:
    """Layers of one subdetector in the negative endcap, the barrel or the positive endcap."""

    name: str
    volume_id: int
    layers: tuple[Layer, ...]

    @property
    def barrel(self) -> bool:
        return self.layers[0].barrel


@dataclass(frozen=True, slots=True)
class System:
    """A subdetector: negative endcap, barrel and positive endcap."""

    name: str
    volumes: tuple[Volume, Volume, Volume]


@dataclass(frozen=True, slots=True)
class _Sensor:
    """A sensor of a module: offset along the normal, and rotation in its plane."""

    offset: float = 0.0
    stereo: float = 0.0


@dataclass(frozen=True, slots=True)
class _Barrel:
    #: Radius and number of staves of each layer.
    layers: tuple[tuple[float, int], ...]
    tilt: float
    #: Number of modules along z, and the distance between their centres.
    along: int
    step: float
    half_lengths: tuple[float, float]
    sensors: tuple[_Sensor, ...]


@dataclass(frozen=True, slots=True)
class _Ring:
    """Modules at one radius of a disc, alternately ``gap`` before and behind the middle of the ring."""

    radius: float
    number: int
    #: From the middle of the disc to that of the ring, positive away from the interaction point.
    offset: float
    gap: float
    half_lengths: tuple[float, float, float]
    sensors: tuple[_Sensor, ...] = (_Sensor(),)
    phi: float = 0.0


_PIXELS: Final = _Barrel(
    layers=((34.0, 16), (70.0, 32), (116.0, 52), (172.0, 78)),
    tilt=0.12,
    along=14,
    step=72.5,
    half_lengths=(8.4, 36.0),
    sensors=(_Sensor(offset=-1.8),),
)
_PIXEL_DISCS: Final = (620.0, 720.0, 840.0, 980.0, 1120.0, 1320.0, 1520.0)
_PIXEL_RINGS: Final = (
    _Ring(76.0, 24, -3.5, 0.6, (8.5, 14.5, 34.0), (_Sensor(offset=-0.3),)),
    _Ring(139.0, 36, 3.5, 0.6, (10.5, 16.5, 34.0), (_Sensor(offset=-0.3),)),
)

_SHORT_STRIPS: Final = _Barrel(
    layers=((260.0, 40), (360.0, 56), (500.0, 78), (660.0, 102)),
    tilt=-0.15,
    along=21,
    step=108.5,
    half_lengths=(24.0, 54.0),
    sensors=(_Sensor(),),
)
_SHORT_STRIP_DISCS: Final = (1300.0, 1550.0, 1850.0, 2200.0, 2550.0, 2950.0)
_SHORT_STRIP_RINGS: Final = (
    _Ring(318.0, 42, -5.0, 2.5, (18.4, 32.2, 78.0)),
    _Ring(470.0, 42, 5.0, 2.5, (30.2, 44.0, 78.0), phi=0.0748),
    _Ring(622.0, 42, -5.0, 2.5, (40.8, 56.4, 78.0)),
)

_LONG_STRIPS: Final = _Barrel(
    layers=((820.0, 60), (1020.0, 80)),
    tilt=-0.15,
    along=21,
    step=108.5,
    half_lengths=(48.0, 54.0),
    sensors=(_Sensor(offset=-3.31, stereo=0.04), _Sensor(offset=3.3)),
)
_LONG_STRIP_DISCS: Final = (1300.0, 1600.0, 1900.0, 2250.0, 2600.0, 3000.0)
_BACK_TO_BACK: Final = (_Sensor(offset=2.5, stereo=-0.02), _Sensor(offset=-2.5, stereo=0.02))
_LONG_STRIP_RINGS: Final = (
    _Ring(820.0, 48, -15.0, 8.0, (53.2, 58.6, 78.0), _BACK_TO_BACK),
    _Ring(990.0, 48, 15.0, 8.0, (64.6, 70.0, 78.0), _BACK_TO_BACK),
)

#: Radii of the beam pipe, the support tube between pixels and strips, and the solenoid, mm. Their half
#: lengths are 4000, 2000 and 3000 mm.
BEAM_PIPE_RADIUS: Final = 24.0
SUPPORT_TUBE_RADIUS: Final = 203.0
SOLENOID_RADIUS: Final = 1180.0
SOLENOID_HALF_LENGTH: Final = 3000.0
#: Inner radius of the solenoid, mm: here the simulation of calorimeters takes over neutral particles.
SOLENOID_INSIDE: Final = 1160.0
#: The plates behind the pixels: |z|, and inner and outer radius, mm.
END_PLATE_Z: Final = 1950.0
END_PLATE_RADII: Final = (40.0, 189.0)
#: Radius and half length of the simulated space, mm; it ends behind the solenoid.
RADIUS: Final = 1200.0
HALF_LENGTH: Final = 3100.0


def systems() -> tuple[System, ...]:
    """Return the subdetectors from the inside out; they have 18,824 sensors."""
    return (
        _system("Pixel", (16, 17, 18), _PIXELS, _PIXEL_DISCS, _PIXEL_RINGS, first=1),
        _system("ShortStrip", (23, 24, 25), _SHORT_STRIPS, _SHORT_STRIP_DISCS, _SHORT_STRIP_RINGS),
        _system("LongStrip", (28, 29, 30), _LONG_STRIPS, _LONG_STRIP_DISCS, _LONG_STRIP_RINGS),
    )


def _system(
    name: str,
    volume_ids: tuple[int, int, int],
    barrel: _Barrel,
    discs: Sequence[float],
    rings: Sequence[_Ring],
    first: int = 0,
) -> System:
    """``first`` is the number of layer ids without modules before the discs at negative z."""
    negative, middle, positive = volume_ids
    return System(
        name,
        (
            Volume(f"{name}EndcapN", negative, _discs([-z for z in reversed(discs)], rings, first=first)),
            Volume(f"{name}Barrel", middle, _cylinders(barrel)),
            Volume(f"{name}EndcapP", positive, _discs(discs, rings)),
        ),
    )


def _layer_id(position: int) -> int:
    """Layers with modules have the even ids, from 2."""
    return 2 * (position + 1)


def _cylinders(barrel: _Barrel) -> tuple[Layer, ...]:
    return tuple(
        Layer(
            _layer_id(position),
            True,
            tuple(_around(barrel, radius, staves)),
            bins=(staves, barrel.along),
        )
        for position, (radius, staves) in enumerate(barrel.layers)
    )


def _around(barrel: _Barrel, radius: float, staves: int) -> Iterator[Module]:
    first = -0.5 * (barrel.along - 1) * barrel.step
    for stave in range(staves):
        phi = 2.0 * math.pi * stave / staves
        normal = (math.cos(phi + barrel.tilt), math.sin(phi + barrel.tilt))
        for sensor in barrel.sensors:
            cosine, sine = math.cos(sensor.stereo), math.sin(sensor.stereo)
            x = (-normal[1] * cosine, normal[0] * cosine, sine)
            y = (normal[1] * sine, -normal[0] * sine, cosine)
            across = radius * math.cos(phi) + sensor.offset * normal[0]
            up = radius * math.sin(phi) + sensor.offset * normal[1]
            for place in range(barrel.along):
                yield Module((across, up, first + place * barrel.step), x, y, barrel.half_lengths)


def _discs(positions: Sequence[float], rings: Sequence[_Ring], first: int = 0) -> tuple[Layer, ...]:
    return tuple(
        Layer(
            _layer_id(position),
            False,
            tuple(module for ring in rings for module in _on_disc(ring, z)),
            bins=(len(rings), max(ring.number for ring in rings)),
        )
        for position, z in enumerate(positions, first)
    )


def _on_disc(ring: _Ring, z: float) -> Iterator[Module]:
    away = math.copysign(1.0, z)
    for place in range(ring.number):
        phi = ring.phi + 2.0 * math.pi * place / ring.number
        out = (math.cos(phi), math.sin(phi))
        middle = z + away * ring.offset + (ring.gap if place % 2 == 0 else -ring.gap)
        for sensor in ring.sensors:
            cosine, sine = math.cos(sensor.stereo), math.sin(sensor.stereo)
            x = (-out[1] * cosine + out[0] * sine, out[0] * cosine + out[1] * sine, 0.0)
            y = (out[1] * sine + out[0] * cosine, -out[0] * sine + out[1] * cosine, 0.0)
            centre = (ring.radius * out[0], ring.radius * out[1], middle + away * sensor.offset)
            yield Module(centre, x, y, ring.half_lengths)
