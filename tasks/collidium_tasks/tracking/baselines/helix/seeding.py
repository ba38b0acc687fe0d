"""Triplets of neighbouring hits that a helix may pass one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from collidium_tasks.tracking.baselines import Floats
from collidium_tasks.tracking.baselines.helix.detector import Hits
from collidium_tasks.tracking.baselines.helix.geometry import GEV_PER_MM
from collidium_tasks.tracking.baselines.helix.residuals import SCATTERING

Indices = npt.NDArray[np.intp]

#: Distance of successive hits of a seed, in mm.
NEAREST, FARTHEST = 8.0, 300.0

#: Slowest seed, transverse momentum in GeV.
SLOWEST = 0.04

#: Largest difference of the polar angles of a seed's two halves, and largest distance from the beam line, in
#: standard deviations.
LARGEST_BEND = 4.0
LARGEST_MISS = 3.0

#: A track from the beam line starts within so much of it, and of the origin along z, in mm.
BEAM_RADIUS, BEAM_LENGTH = 3.0, 200.0

#: Largest azimuth between two hits of a seed from the beam line, in rad.
LARGEST_STEP = 1.2


def triplets(hits: Hits, free: npt.NDArray[np.bool_], from_beam_line: bool) -> Indices:
    """Seeds of free hits other than long strips, from the inside out, straightest first; shape (n, 3).

    The two halves agree in polar angle within multiple scattering; with ``from_beam_line`` the circle also
    passes the origin, and the line of z over the arc comes from near it.
    """
    usable = np.flatnonzero(free & ~hits.long_strip)
    first, second = _pairs(hits, usable, from_beam_line)
    seeds = _Triplets.of(hits, _joined(first, second, len(hits.radius)))
    good = (seeds.bend < LARGEST_BEND) & (SLOWEST * np.abs(seeds.curvature) < GEV_PER_MM)
    bend = seeds.bend**2
    if from_beam_line:
        miss, z = seeds.beam_line()
        good &= (miss < LARGEST_MISS) & (np.abs(z) < BEAM_LENGTH)
        bend = bend + miss**2
    kept = np.flatnonzero(good)
    return seeds.hits[kept[np.argsort(bend[kept])]]


def _pairs(hits: Hits, usable: Indices, from_beam_line: bool) -> tuple[Indices, Indices]:
    """Neighbouring hits, the one nearer to the origin first; sorted by it."""
    position = hits.position[usable]
    distance = np.linalg.norm(position[:, None] - position[None], axis=2)
    origin = np.linalg.norm(position, axis=1)
    near = (distance > NEAREST) & (distance < FARTHEST) & (origin[None] > origin[:, None])
    inner, outer = (usable[places] for places in np.nonzero(near))
    if not from_beam_line:
        return inner, outer
    step = hits.position[outer] - hits.position[inner]
    slope = step[:, 2] / np.maximum(np.hypot(step[:, 0], step[:, 1]), 1e-6)
    z = hits.position[inner, 2]
    # A straight line only: what bends much may miss by half of the way.
    pointing = np.abs(z - slope * hits.radius[inner]) < BEAM_LENGTH + np.abs(z) / 2
    azimuth = np.arctan2(hits.position[:, 1], hits.position[:, 0])
    turned = np.remainder(azimuth[outer] - azimuth[inner] + np.pi, 2 * np.pi) - np.pi
    kept = pointing & (np.abs(turned) < LARGEST_STEP)
    return inner[kept], outer[kept]


def _joined(first: Indices, second: Indices, hits: int) -> Indices:
    """Every pair with every pair that begins where it ends, shape (n, 3); ``first`` is sorted."""
    begins = np.searchsorted(first, np.arange(hits + 1))
    successors = np.diff(begins)[second]
    pair = np.repeat(np.arange(len(first)), successors)
    number = np.arange(len(pair)) - np.repeat(np.cumsum(successors) - successors, successors)
    next_pair = begins[second[pair]] + number
    return np.stack([first[pair], second[pair], second[next_pair]], axis=1)


@dataclass(frozen=True, slots=True)
class _Triplets:
    """Triplets and their helices; arrays of shape (n,)."""

    hits: Indices  # (n, 3)
    points: Floats  # (n, 3, 3), mm
    #: Signed, in 1/mm.
    curvature: Floats
    cot_theta: Floats
    #: Difference of the two halves' polar angles, in standard deviations.
    bend: Floats
    #: Uncertainty of the circle's distance from the origin, in mm.
    miss_sigma: Floats

    @classmethod
    def of(cls, hits: Hits, triplet: Indices) -> _Triplets:
        points = hits.position[triplet]
        lower, upper = points[:, 1] - points[:, 0], points[:, 2] - points[:, 1]
        whole = _length(points[:, 2] - points[:, 0])
        curvature = 2 * _cross(lower, upper) / np.maximum(_length(lower) * _length(upper) * whole, 1e-9)
        lower_arc, upper_arc = (_arc(_length(part), curvature) for part in (lower, upper))
        angle = np.arctan2(upper[:, 2], upper_arc) - np.arctan2(lower[:, 2], lower_arc)
        cot_theta = (lower[:, 2] + upper[:, 2]) / (lower_arc + upper_arc)
        momentum = GEV_PER_MM * np.hypot(1, cot_theta) / np.maximum(np.abs(curvature), 1e-6)
        sigma = hits.along[triplet]
        sigma_angle = np.sqrt(
            (SCATTERING / momentum) ** 2
            + (sigma[:, 0] ** 2 + sigma[:, 1] ** 2) / np.square(np.hypot(lower[:, 2], lower_arc))
            + (sigma[:, 1] ** 2 + sigma[:, 2] ** 2) / np.square(np.hypot(upper[:, 2], upper_arc))
        )
        inner, across = hits.radius[triplet[:, 0]], hits.across[triplet[:, 0]]
        scattered = SCATTERING / momentum * inner * np.hypot(1, cot_theta)
        miss_sigma = np.sqrt(0.05**2 + scattered**2 + (2 * across * inner / np.maximum(whole, 1e-6)) ** 2)
        bend = np.where(_forward(lower, upper), np.abs(angle) / sigma_angle, np.inf)
        return cls(triplet, points, curvature, cot_theta, bend, miss_sigma)

    def beam_line(self) -> tuple[Floats, Floats]:
        """How far the circles miss the beam line, beyond BEAM_RADIUS in standard deviations, and z there."""
        x, y, z = self.points[:, 0].T
        centre_x, centre_y = self._centres().T
        radius = np.hypot(centre_x - x, centre_y - y)
        miss = np.abs(np.hypot(centre_x, centre_y) - radius)
        turned = np.arctan2(y - centre_y, x - centre_x) - np.arctan2(-centre_y, -centre_x)
        arc = radius * np.abs(np.remainder(turned + np.pi, 2 * np.pi) - np.pi)
        return np.maximum(miss - BEAM_RADIUS, 0) / self.miss_sigma, z - self.cot_theta * arc

    def _centres(self) -> Floats:
        """Centres of the circles through three points, shape (n, 2)."""
        first, last = self.points[:, 1] - self.points[:, 0], self.points[:, 2] - self.points[:, 0]
        area = 2 * _cross(first, last)
        area = np.where(np.abs(area) < 1e-9, 1e-9, area)
        a, b = np.square(_length(first)), np.square(_length(last))
        x = (last[:, 1] * a - first[:, 1] * b) / area
        y = (first[:, 0] * b - last[:, 0] * a) / area
        centres: Floats = self.points[:, 0, :2] + np.stack([x, y], axis=1)
        return centres


def _length(vector: Floats) -> Floats:
    """Transverse length, shape (n,)."""
    return np.hypot(vector[:, 0], vector[:, 1])


def _cross(first: Floats, second: Floats) -> Floats:
    """z component of the product of transverse vectors: positive where the second turns left."""
    product: Floats = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    return product


def _forward(first: Floats, second: Floats) -> npt.NDArray[np.bool_]:
    forward: npt.NDArray[np.bool_] = first[:, 0] * second[:, 0] + first[:, 1] * second[:, 1] > 0
    return forward


def _arc(chord: Floats, curvature: Floats) -> Floats:
    """Length of the arc over a chord."""
    half = np.clip(np.abs(curvature) * chord / 2, 1e-9, 1)
    return chord * np.arcsin(half) / half
