"""The layers of the Open Data Detector, the hits of an event by layer, and helices through three hits.

Helices are parallel to the z axis. Units are mm, T and GeV.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import BENDING, FIELD_TESLA
from collidium_tasks.tracking.baselines import Floats

Indices = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

#: pT over radius of charge 1, GeV/mm.
GEV_PER_MM: Final = BENDING * FIELD_TESLA

#: Angle of multiple scattering in one layer times momentum, rad GeV. Source: Highland's formula (Review of
#: Particle Physics, "Passage of particles through matter") for 3% of a radiation length.
SCATTERING: Final = 2.4e-3

#: Mass assumed for particles, GeV.
PION_MASS: Final = 0.14


@dataclass(frozen=True, slots=True)
class Layer:
    """Sensors at about one radius (barrel), or at about one abs(z) on both sides (discs); lengths in mm.

    ``at`` is that radius or abs(z), ``depth`` the maximum distance of hits from it. The layer extends from
    ``low`` to ``high`` in abs(z) (barrel) or radius (discs). ``across`` and ``along`` are the standard
    deviations of a hit in azimuth and in z (barrel) or radius (discs). Hits on ``long`` strips are in the
    middle of the strip, which is at a small angle to z or the radius.
    """

    barrel: bool
    at: float
    depth: float
    low: float
    high: float
    across: float
    along: float

    @property
    def long(self) -> bool:
        return self.along > 1.0

    def holds(self, radius: Floats, z: Floats) -> Bools:
        """Return whether hits are on the layer; shape as ``radius``."""
        at, along = (radius, np.abs(z)) if self.barrel else (np.abs(z), radius)
        return (np.abs(at - self.at) < 1.5 * self.depth) & (along >= self.low) & (along <= self.high)


def _layers(barrel: bool, places: tuple[float, ...], *numbers: float) -> list[Layer]:
    return [Layer(barrel, at, *numbers) for at in places]


#: In the order in which outgoing particles cross layers, each at most once.
LAYERS: Final = (
    *_layers(True, (33.2, 68.7, 114.5, 170.4), 1.3, 0.0, 509.0, 0.015, 0.015),
    *_layers(False, (620.0, 720.0, 840.0, 980.0, 1120.0, 1320.0, 1520.0), 4.5, 41.0, 175.0, 0.015, 0.015),
    *_layers(True, (261.1, 360.8, 500.5, 660.4), 3.8, 0.0, 1141.0, 0.025, 0.15),
    *_layers(False, (1300.0, 1550.0, 1850.0, 2200.0, 2550.0, 2950.0), 7.6, 238.0, 704.0, 0.025, 0.15),
    *_layers(True, (821.3, 1021.1), 10.6, 0.0, 1141.0, 1.0, 31.0),
    *_layers(False, (1300.0, 1600.0, 1900.0, 2250.0, 2600.0, 3000.0), 25.6, 740.0, 1070.0, 1.0, 45.0),
)


@cache
def next_layers() -> dict[tuple[int, int], list[int]]:
    """Return the layers that follow each pair of layers along straight lines from the luminous region."""
    cot_theta = np.sinh(np.linspace(0.0, 4.2, 300))
    following: dict[tuple[int, int], set[int]] = {}
    for start in (-120.0, 0.0, 120.0):
        crossed = []
        for layer in LAYERS:
            along = start + layer.at * cot_theta if layer.barrel else (layer.at - start) / (cot_theta + 1e-9)
            crossed.append((np.abs(along) > layer.low) & (np.abs(along) < layer.high))
        for row in np.unique(crossed, axis=1).T:
            path = np.flatnonzero(row).tolist()
            for pair, third in zip(pairwise(path), path[2:], strict=False):
                following.setdefault(pair, set()).add(third)
    return {pair: sorted(thirds) for pair, thirds in following.items()}


#: Number of bins in azimuth, and a length above all abs(z) and radii, mm.
PHI_BINS: Final = 128
SPAN: Final = 1e4


@dataclass(frozen=True, slots=True)
class LayerHits:
    """Hits of one layer, sorted by bin in azimuth, then by z (barrel) or radius (discs).

    Radii at negative z are negative. ``key`` is the bin times SPAN plus z or radius.
    """

    layer: Layer
    index: Indices
    key: Floats

    @property
    def density(self) -> float:
        """Hits per mm² of the layer, for at least one hit."""
        layer = self.layer
        area = 4 * layer.at * layer.high if layer.barrel else 2 * (layer.high**2 - layer.low**2)
        return max(len(self.index), 1) / (np.pi * area)

    @classmethod
    def of(cls, layer: Layer, index: Indices, position: Floats) -> LayerHits:
        """Sort the hits ``index`` of a layer, given the positions of all hits, shape (hits, 3), in mm."""
        x, y, z = position[index].T
        bins = np.floor(np.arctan2(y, x) * (PHI_BINS / (2 * np.pi))) % PHI_BINS
        key = bins * SPAN + (z if layer.barrel else np.copysign(np.hypot(x, y), z))
        order = np.argsort(key)
        return cls(layer, index[order], key[order])

    def near(self, phi: Floats, width: Floats, low: Floats, high: Floats) -> tuple[Indices, Indices]:
        """Return pairs of a window's number and a hit in it, each of shape (pairs,).

        Windows extend from ``phi - width`` to ``phi + width``, in rad, rounded up to whole bins, and from
        ``low`` to ``high``, in mm; shapes (windows,).
        """
        scale = PHI_BINS / (2 * np.pi)
        first = np.floor((phi - width) * scale)
        bins = np.minimum(np.floor((phi + width) * scale) - first + 1, PHI_BINS)
        window, number = counted(bins.astype(np.intp))
        offset = (first[window] + number) % PHI_BINS * SPAN
        begin = np.searchsorted(self.key, offset + low[window])
        end = np.searchsorted(self.key, offset + high[window], side="right")
        row, number = counted(np.maximum(end - begin, 0))
        return window[row], self.index[begin[row] + number]


def counted(counts: Indices) -> tuple[Indices, Indices]:
    """Return each index repeated by its count, and the number of each repetition; shapes (sum of counts,)."""
    places = np.repeat(np.arange(len(counts)), counts)
    return places, np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)


@dataclass(frozen=True, slots=True)
class Helices:
    """Circles with signed curvature (positive: anticlockwise), and z linear in the arc; shapes (n,).

    Helices start at the last of three points, in direction ``phi``. ``first`` and ``middle`` are the arcs
    from the other two points to it. ``across`` and ``along`` are the uncertainties of the points
    perpendicular to the track, in the transverse plane and out of it, shape (n, 3).
    """

    x: Floats
    y: Floats
    z: Floats
    phi: Floats
    curvature: Floats
    cot_theta: Floats
    first: Floats
    middle: Floats
    across: Floats
    along: Floats

    @classmethod
    def through(
        cls, points: Floats, across: Floats, along: Floats, disc: Bools, first_has_z: bool = True
    ) -> Helices:
        """Return the helices through points in the order of flight, shape (n, 3, 3): point, coordinate.

        ``across`` and ``along`` are the uncertainties of the points, shapes (n, 3); ``along`` is that of the
        radius on a ``disc`` and of z in the barrel. Unless ``first_has_z``, the first point is on the beam
        line and the slope in z follows from the other two.
        """
        lower, upper = points[:, 1] - points[:, 0], points[:, 2] - points[:, 1]
        chord = lower + upper
        whole, part = np.hypot(chord[:, 0], chord[:, 1]), np.hypot(upper[:, 0], upper[:, 1])
        area = lower[:, 0] * upper[:, 1] - lower[:, 1] * upper[:, 0]
        sides = whole * part * np.hypot(lower[:, 0], lower[:, 1])
        curvature = 2 * area / np.maximum(sides, 1e-9)
        curvature = np.where(np.abs(curvature) < 1e-9, 1e-9, curvature)
        phi = np.arctan2(chord[:, 1], chord[:, 0]) + np.arcsin(np.clip(curvature * whole / 2, -1, 1))
        first, middle = arc(whole, curvature), arc(part, curvature)
        cot_theta = (chord[:, 2] / first) if first_has_z else (upper[:, 2] / middle)
        cot_theta = np.where(np.abs(cot_theta) < 1e-6, 1e-6, cot_theta)
        sin_theta = 1 / np.hypot(1, cot_theta)
        along = along * np.where(disc, (np.abs(cot_theta) * sin_theta)[:, None], sin_theta[:, None])
        x, y, z = points[:, 2].T
        return cls(x, y, z, phi, curvature, cot_theta, first, middle, across, along)

    def take(self, rows: Indices) -> Helices:
        return Helices(*(getattr(self, name)[rows] for name in self.__slots__))

    @property
    def sin_theta(self) -> Floats:
        return 1 / np.hypot(1, self.cot_theta)

    @property
    def transverse_momentum(self) -> Floats:
        return GEV_PER_MM / np.abs(self.curvature)

    def at(self, length: Floats) -> tuple[Floats, Floats]:
        """x and y after an arc, shape (n,)."""
        half = self.curvature * length / 2
        step = length * np.sinc(half / np.pi)
        return self.x + step * np.cos(self.phi + half), self.y + step * np.sin(self.phi + half)

    def arc_to(self, layer: Layer) -> Floats:
        """Return the arc to the next outward crossing of a layer within half a turn, or nan; shape (n,)."""
        if not layer.barrel:
            length = (np.copysign(layer.at, self.cot_theta) - self.z) / self.cot_theta
            return np.where((length > 0) & (np.abs(self.curvature) * length < np.pi), length, np.nan)
        # The centre is w / curvature. The circles cross at equal angles to both sides of w.
        wx, wy = self.curvature * self.x - np.sin(self.phi), self.curvature * self.y + np.cos(self.phi)
        inner = self.x**2 + self.y**2
        side = self.curvature * (layer.at**2 - inner) + 2 * (self.x * wx + self.y * wy)
        cosine = side / (2 * layer.at * np.hypot(wx, wy))
        azimuth = np.arctan2(wy, wx) - np.arccos(np.clip(cosine, -1, 1))
        dx, dy = layer.at * np.cos(azimuth) - self.x, layer.at * np.sin(azimuth) - self.y
        ahead = (
            (inner < layer.at**2) & (np.abs(cosine) < 1) & (dx * np.cos(self.phi) + dy * np.sin(self.phi) > 0)
        )
        return np.where(ahead, arc(np.hypot(dx, dy), self.curvature), np.nan)

    def spread(self, length: Floats) -> tuple[Floats, Floats]:
        """Return uncertainties perpendicular to the track after an arc (negative: back), mm; shapes (n,).

        In the transverse plane and out of it. They follow from the uncertainties of the three points, for a
        parabola and a line, and from multiple scattering since the nearest point.
        """
        first, middle = length + self.first, length + self.middle
        span = np.maximum(self.first - self.middle, 1e-3)
        sin_theta = self.sin_theta
        momentum = self.transverse_momentum / sin_theta
        distance = np.minimum(np.minimum(np.abs(first), np.abs(middle)), np.abs(length)) / sin_theta
        scattered = distance * SCATTERING / momentum * np.hypot(1, PION_MASS / momentum)
        across = (
            (self.across[:, 0] * length * middle / (self.first * span)) ** 2
            + (self.across[:, 1] * length * first / (self.middle * span)) ** 2
            + (self.across[:, 2] * first * middle / (self.first * self.middle)) ** 2
            + scattered**2 * (1 + (middle / self.first) ** 2)
        )
        along = (
            (self.along[:, 2] * first / self.first) ** 2
            + (self.along[:, 0] * length / self.first) ** 2
            + 2 * scattered**2
        )
        return np.sqrt(across), np.sqrt(along)

    def residuals(self, position: Floats, layer: Layer) -> tuple[Floats, Floats, Floats]:
        """Return the arcs to hits of a layer, shape (n, 3), and residuals; mm, shapes (n,).

        Residuals are across the track, and in z (barrel) or along the radius (discs).
        """
        x, y, z = position.T
        if layer.barrel:
            dx, dy = x - self.x, y - self.y
            cosine, sine = np.cos(self.phi), np.sin(self.phi)
            length = np.copysign(arc(np.hypot(dx, dy), self.curvature), dx * cosine + dy * sine)
            across = self.curvature / 2 * (dx**2 + dy**2) - dy * cosine + dx * sine
            return length, across, z - self.z - self.cot_theta * length
        length = (z - self.z) / self.cot_theta
        at_x, at_y = self.at(length)
        radius = np.hypot(x, y)
        dx, dy = x - at_x, y - at_y
        return length, (x * dy - y * dx) / radius, (x * dx + y * dy) / radius

    def sigmas(self, length: Floats, layer: Layer) -> tuple[Floats, Floats]:
        """Return standard deviations of the residuals of a layer's hits, mm; shapes (n,)."""
        across, along = self.spread(length)
        sin_theta = self.sin_theta
        incidence = sin_theta if layer.barrel else np.maximum(np.abs(self.cot_theta) * sin_theta, 1e-3)
        return np.hypot(across, layer.across), np.hypot(along / incidence, layer.along)

    def beam_line(self) -> tuple[Floats, Floats, Floats]:
        """Return the distance to the beam line, its uncertainty, and z there; mm, shapes (n,)."""
        back = arc(np.hypot(self.x, self.y), self.curvature)
        wx, wy = self.curvature * self.x - np.sin(self.phi), self.curvature * self.y + np.cos(self.phi)
        norm = np.hypot(wx, wy)
        squared = self.curvature * (self.x**2 + self.y**2)
        distance = (squared + 2 * (self.y * np.cos(self.phi) - self.x * np.sin(self.phi))) / (1 + norm)
        return np.abs(distance), self.spread(-back)[0], self.z - self.cot_theta * back


def arc(chord: Floats | float, curvature: Floats | float) -> Floats:
    """Return the length of the arc over a chord, at most half a turn."""
    half = np.clip(np.abs(curvature) * chord / 2, 1e-9, 1)
    length: Floats = chord * np.arcsin(half) / half
    return length
