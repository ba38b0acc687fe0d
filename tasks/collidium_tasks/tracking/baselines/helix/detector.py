"""The layers of the Open Data Detector, how well they measure, and where the hits of an event lie on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium_tasks.tracking.baselines import Floats

Indices = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Layer:
    """Sensors at nearly one radius (barrel), or at nearly one abs(z) on both sides (discs); lengths in mm.

    ``at`` is that radius or abs(z), ``depth`` how far hits lie from it at most. The layer reaches from
    ``low`` to ``high`` in abs(z) (barrel) or radius (discs). ``across`` and ``along`` are the standard
    deviations of a hit in azimuth and in z (barrel) or radius (discs). Strips that are ``long`` are hit
    anywhere along their length, at a small angle to that direction; the hit is given in their middle.
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
        """Whether hits are the layer's; shape as ``radius``."""
        at, along = (radius, np.abs(z)) if self.barrel else (np.abs(z), radius)
        return (np.abs(at - self.at) < 1.5 * self.depth) & (along >= self.low) & (along <= self.high)


def _layers(barrel: bool, places: tuple[float, ...], *numbers: float) -> list[Layer]:
    return [Layer(barrel, at, *numbers) for at in places]


#: Particles that fly outwards pass layers in this order, each at most once.
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
    """The layers that follow on a pair of layers, along straight lines from the beams; by number."""
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


#: Number of bins in azimuth, and a length above every abs(z) and radius, in mm.
PHI_BINS: Final = 128
SPAN: Final = 1e4


@dataclass(frozen=True, slots=True)
class LayerHits:
    """Hits of one layer, sorted by bin in azimuth and, in a bin, by z (barrel) or radius (discs).

    Radii on the side of negative z are negative. ``key`` is bin times SPAN plus that length.
    """

    layer: Layer
    index: Indices
    key: Floats

    @property
    def density(self) -> float:
        """Hits per mm² of the layer, of one at the least."""
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
        """Pairs of a window, by its number, and a hit in it; each of shape (pairs,).

        Windows reach from ``phi - width`` to ``phi + width``, in rad, rounded up to whole bins, and from
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
    """Each place as often as its count says, and for each the numbers from 0; shapes (sum of counts,)."""
    places = np.repeat(np.arange(len(counts)), counts)
    return places, np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
