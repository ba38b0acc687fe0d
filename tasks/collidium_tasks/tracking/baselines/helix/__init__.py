"""The baseline `helix`: a track finder that uses positions of hits only, vectorised over seeds.

1. Seeding: pairs of hits in consecutive layers that point to the beam line, extended by the hits of the next
   layer that agree with a circle through the beam line and a line in z.
2. Track following: all seeds are extended outwards layer by layer. The helix through the last three hits
   predicts the next one; the most likely hit is added if it is more likely than a random one.
3. Ambiguity resolution: of tracks that share hits, the more likely one keeps them.
4. Overlaps: where sensors overlap, tracks get the second hit of the layer.

This is repeated with looser limits among the remaining hits. Python loops run over layers, never over hits or
tracks.

The gain of a hit is the log of its likelihood over the density of hits in the layer. A cut in standard
deviations took five times the CPU with 200 pileup collisions, and gave a fifth of fakes instead of a
twentieth. Helices run through three hits exactly, as multiple scattering exceeds the resolution of pixels
below 10 GeV.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium_tasks.tracking.baselines import EventHits, Floats, events_of, predictions
from collidium_tasks.tracking.baselines.helix.detector import (
    GEV_PER_MM,
    LAYERS,
    Bools,
    Helices,
    Indices,
    Layer,
    LayerHits,
    arc,
    next_layers,
)


@dataclass(frozen=True, slots=True)
class Search:
    """Limits of one search.

    Seeds have a pT of at least ``min_pt`` (GeV), start in the first ``seed_layers`` layers, and originate
    within three times ``beam_radius`` of the beam line and ``beam_length`` of the origin (mm). Tracks need
    hits in ``min_hits`` layers.
    """

    min_pt: float
    beam_radius: float
    beam_length: float
    seed_layers: int
    min_hits: int


SEARCHES: Final = (
    Search(min_pt=0.3, beam_radius=0.4, beam_length=170.0, seed_layers=11, min_hits=5),
    Search(min_pt=0.1, beam_radius=4.0, beam_length=200.0, seed_layers=15, min_hits=4),
)

#: Maximum distance of a hit from its track, in standard deviations.
CUT: Final = 3.5

#: Minimum gain of a hit: the log likelihood ratio of belonging to the track and of being random.
MIN_GAIN: Final = 0.5

#: Minimum sum of the gains of a track's hits after its seed.
MIN_TRACK_GAIN: Final = 5.0

#: Maximum number of consecutive layers without a hit.
MAX_HOLES: Final = 1

#: Minimum fraction of its hits that a track does not share with better tracks.
OWN_HITS: Final = 0.6

#: Minimum distance of overlapping sensors, mm, in radius (barrel) or z (discs).
OVERLAP: Final = 0.5


def reconstruct(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Tracks of every event in the table ``tracker_hits``, which needs x, y and z (mm).

    Returns event_id, hit_id and track_id, one row per hit; -1 for hits of no track.
    """
    return predictions((event, track_numbers(event)) for event in events_of(tables["tracker_hits"]))


def track_numbers(
    event: EventHits,
    searches: Sequence[Search] = SEARCHES,
    found: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.int64]:
    """Return the number of the track of each hit, from 0, or -1; shape (hits,). Keeps tracks of ``found``."""
    hits = Hits.of(event)
    numbers = np.full(len(event.x), -1, np.int64) if found is None else found.copy()
    for search in searches:
        grids = hits.by_layer(numbers < 0)
        tracks = chosen(followed(seeds(search, hits, grids), hits, grids), search.min_hits, len(numbers))
        first = numbers.max(initial=-1) + 1
        track, layer = np.nonzero(tracks >= 0)
        numbers[tracks[track, layer]] = first + track
        track, hit = overlapping(tracks, hits, hits.by_layer(numbers < 0))
        numbers[hit] = first + track
    return numbers


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits of an event, and the beam line as the last entry; shapes (hits + 1,), lengths in mm."""

    position: Floats  # (hits + 1, 3)
    #: Number of the layer, or ``len(LAYERS)``.
    layer: Indices
    across: Floats
    along: Floats
    disc: Bools

    @classmethod
    def of(cls, event: EventHits) -> Hits:
        position = np.append(np.stack([event.x, event.y, event.z], axis=1), np.zeros((1, 3)), axis=0)
        radius = np.hypot(position[:, 0], position[:, 1])
        layer = np.full(len(radius), len(LAYERS))
        for number, one in enumerate(LAYERS):
            layer[one.holds(radius, position[:, 2])] = number
        across, along = (
            np.array([*(getattr(one, name) for one in LAYERS), 0.0])[layer] for name in ("across", "along")
        )
        disc = np.array([*(not one.barrel for one in LAYERS), False])[layer]
        return cls(position, layer, across, along, disc)

    def by_layer(self, free: Bools) -> list[LayerHits]:
        """Return the free hits of each layer."""
        places = np.where(free, self.layer[:-1], len(LAYERS))
        return [
            LayerHits.of(layer, np.flatnonzero(places == number), self.position)
            for number, layer in enumerate(LAYERS)
        ]

    def helices(self, points: Indices, beam_radius: float | None = None) -> Helices:
        """Return the helices through three hits each, or the beam line and two hits; ``points`` is (n, 3)."""
        across = self.across[points]
        if beam_radius is not None:
            across[:, 0] = beam_radius
        return Helices.through(
            self.position[points], across, self.along[points], self.disc[points], beam_radius is None
        )


def seeds(search: Search, hits: Hits, grids: list[LayerHits]) -> Indices:
    """Return triplets of hits in consecutive layers that are compatible with one particle; shape (n, 3)."""
    triplets = [np.empty((0, 3), np.intp)]
    for (first, second), thirds in next_layers().items():
        if first >= search.seed_layers or LAYERS[second].long:
            continue
        pairs = doublets(search, hits, grids[first], grids[second])
        helices = hits.helices(np.insert(pairs, 0, -1, axis=1), search.beam_radius)
        fast = np.flatnonzero(helices.transverse_momentum > search.min_pt)
        pairs, helices = pairs[fast], helices.take(fast)
        for third in thirds:
            if not LAYERS[third].long:
                pair, hit, _, _ = candidates(helices, hits, grids[third])
                triplets.append(np.column_stack([pairs[pair], hit]))
    triplet = np.concatenate(triplets)
    helices = hits.helices(triplet)
    distance, sigma, z = helices.beam_line()
    return triplet[
        (helices.transverse_momentum > search.min_pt)
        & (distance < 3 * (search.beam_radius + sigma))
        & (np.abs(z) < search.beam_length)
    ]


def doublets(search: Search, hits: Hits, inner: LayerHits, outer: LayerHits) -> Indices:
    """Return pairs of hits that are compatible with a particle from near the beam line, shape (n, 2)."""
    x, y, z = hits.position[inner.index].T
    radius, phi, layer = np.hypot(x, y), np.arctan2(y, x), outer.layer
    curvature = GEV_PER_MM / search.min_pt
    low, high = _reach(search, layer, radius, z, curvature)
    last = layer.at if layer.barrel else np.maximum(-low, high)
    turn = curvature / 2 * (arc(last, curvature) - arc(radius, curvature))
    turn += 3 * search.beam_radius * (1 / radius - 1 / last) + 2e-3
    place, hit = outer.near(phi, turn, low, high)
    other_x, other_y, _ = hits.position[hit].T
    turned = np.remainder(np.arctan2(other_y, other_x) - phi[place] + np.pi, 2 * np.pi) - np.pi
    kept = (np.abs(turned) < turn[place]) & (np.hypot(other_x, other_y) > radius[place])
    return np.column_stack([inner.index[place[kept]], hit[kept]])


def _reach(
    search: Search, layer: Layer, radius: Floats, z: Floats, curvature: float
) -> tuple[Floats, Floats]:
    """Return the range in z or radius (mm) in which particles through given hits cross a layer.

    They come from anywhere in the luminous region, with a curvature of at most ``curvature``, in 1/mm.
    """
    length = search.beam_length
    if layer.barrel:
        ratios = (layer.at / radius, arc(layer.at, curvature) / arc(radius, curvature))
        ends = [start + (z - start) * ratio for start in (-length, length) for ratio in ratios]
        slack = layer.depth * (1 + (np.abs(z) + length) / radius)
        low, high = np.minimum.reduce(ends) - slack, np.maximum.reduce(ends) + slack
        return np.maximum(low, -layer.high), np.minimum(high, layer.high)
    # The arc to the disc over that to the hit, from both ends of the luminous region.
    shortest = (layer.at + length) / (np.abs(z) + length) * arc(radius, curvature)
    longest = (layer.at - length) / np.maximum(np.abs(z) - length, 1.0)
    half = np.minimum(shortest * curvature / 2, np.pi / 2)
    low = np.clip(2 / curvature * np.sin(half) - layer.depth, radius, layer.high)
    high = np.clip(radius * longest + layer.depth, low, layer.high)
    return np.where(z > 0, low, -high), np.where(z > 0, high, -low)


def candidates(helices: Helices, hits: Hits, grid: LayerHits) -> tuple[Indices, Indices, Floats, Indices]:
    """Find hits of a layer that extend helices.

    Returns pairs of a helix number and a hit, with the hit's gain (MIN_GAIN), each of shape (pairs,); and the
    numbers of the helices that cross the layer well within its limits.
    """
    layer = grid.layer
    length = helices.arc_to(layer)
    near = np.flatnonzero(~np.isnan(length))
    helices, length = helices.take(near), length[near]
    x, y = helices.at(length)
    radius, direction = np.hypot(x, y), helices.phi + helices.curvature * length
    along = helices.z + helices.cot_theta * length if layer.barrel else np.copysign(radius, helices.cot_theta)
    sigma_across, sigma_along = helices.sigmas(length, layer)
    # Hits are up to ``layer.depth`` before and behind the nominal crossing.
    cosine = np.maximum((x * np.cos(direction) + y * np.sin(direction)) / radius, 0.2)
    steep = np.abs(helices.cot_theta) if layer.barrel else 1 / np.abs(helices.cot_theta)
    step = layer.depth / cosine if layer.barrel else layer.depth * steep
    width = (CUT * sigma_across / cosine + step * np.sqrt(1 - cosine**2)) / radius
    limit = CUT * sigma_along + (step * steep if layer.barrel else step)
    best = -np.log(2 * np.pi * grid.density * sigma_across * sigma_along)
    crossed = (np.abs(along) > layer.low - limit) & (np.abs(along) < layer.high + limit)
    inside = np.flatnonzero(crossed & (best > MIN_GAIN))
    place, hit = grid.near(
        np.arctan2(y, x)[inside], width[inside], (along - limit)[inside], (along + limit)[inside]
    )
    place = inside[place]
    _, across, off = helices.take(place).residuals(hits.position[hit], layer)
    chi2 = (across / sigma_across[place]) ** 2 + (off / sigma_along[place]) ** 2
    gain = best[place] - chi2 / 2
    good = np.flatnonzero((chi2 < CUT**2) & (gain > MIN_GAIN))
    margin = np.minimum(2 * sigma_along, 10.0)
    certain = (np.abs(along) < layer.high - margin) & (layer.barrel | (np.abs(along) > layer.low + margin))
    return near[place[good]], hit[good], gain[good], near[certain]


def followed(seeds: Indices, hits: Hits, grids: list[LayerHits]) -> tuple[Indices, Floats]:
    """Extend all seeds, shape (n, 3), outwards.

    Returns the hit of each track in each layer, or -1, shape (n, layers), and the sums of gains, shape (n,).
    """
    tracks = np.full((len(seeds), len(LAYERS)), -1, np.intp)
    for column in seeds.T:
        tracks[np.arange(len(seeds)), hits.layer[column]] = column
    points, last = seeds.copy(), hits.layer[seeds[:, 2]]
    holes, gains = np.zeros(len(seeds), np.intp), np.zeros(len(seeds))
    for number, layer in enumerate(LAYERS):
        active = np.flatnonzero((last < number) & (holes <= MAX_HOLES))
        place, hit, gain, expected = candidates(hits.helices(points[active]), hits, grids[number])
        holes[active[expected]] += 1
        nearest = _first(place, -gain)
        track, hit = active[place[nearest]], hit[nearest]
        tracks[track, number] = hit
        holes[track] = 0
        gains[track] += gain[nearest]
        if not layer.long:
            points[track] = np.column_stack([points[track, 1:], hit])
    return tracks, gains


def chosen(found: tuple[Indices, Floats], min_hits: int, hits: int) -> Indices:
    """Return tracks that share no hit, from tracks and gains of :func:`followed`; shape (n, layers).

    A hit belongs to its track of largest gain. Tracks that own all of their hits are kept, and the others
    lose the hits of these; this is repeated until no tracks are left.
    """
    tracks, gains = found
    order = np.argsort(-gains, kind="stable")
    tracks = tracks[order[gains[order] > MIN_TRACK_GAIN]]
    own = size = np.count_nonzero(tracks >= 0, axis=1)
    kept = [tracks[:0]]
    while len(tracks):
        enough = own >= np.maximum(min_hits, OWN_HITS * size)
        tracks, size, own = tracks[enough], size[enough], own[enough]
        owner = np.full(hits + 1, len(tracks))
        track, layer = np.nonzero(tracks >= 0)
        np.minimum.at(owner, tracks[track, layer], track)
        loses = np.zeros(len(tracks), np.bool_)
        loses[track[owner[tracks[track, layer]] != track]] = True
        kept.append(tracks[~loses])
        taken = np.zeros(hits + 1, np.bool_)
        taken[kept[-1]] = True
        taken[-1] = False
        tracks, size = np.where(taken[tracks[loses]], -1, tracks[loses]), size[loses]
        own = np.count_nonzero(tracks >= 0, axis=1)
    return np.concatenate(kept)


def overlapping(tracks: Indices, hits: Hits, grids: list[LayerHits]) -> tuple[Indices, Indices]:
    """Find free hits on overlapping sensors of layers in which tracks, shape (n, layers), have a hit.

    Returns pairs of a track number and a hit, each of shape (pairs,).
    """
    short = np.array([not layer.long for layer in LAYERS])
    order = np.argsort((tracks < 0) | ~short, axis=1, kind="stable")
    inner = np.take_along_axis(tracks, order, axis=1)
    points = np.count_nonzero((tracks >= 0) & short, axis=1)
    found = []
    for number, grid in enumerate(grids):
        track = np.flatnonzero((tracks[:, number] >= 0) & (points >= 3))
        hit = tracks[track, number]
        # The helix through the three hits from this layer on, or through the last three.
        begin = np.count_nonzero((tracks[track, :number] >= 0) & short[:number], axis=1)
        begin = np.minimum(begin, points[track] - 3)
        helices = hits.helices(inner[track[:, None], begin[:, None] + np.arange(3)])
        x, y, z = hits.position[hit].T
        radius = np.hypot(x, y)
        layer = grid.layer
        steep = np.abs(helices.cot_theta) if layer.barrel else 1 / np.abs(helices.cot_theta)
        along = z if layer.barrel else np.copysign(radius, z)
        step = 2 * layer.depth * steep + 2 * CUT * layer.along
        width = (2 * layer.depth + 2 * CUT * layer.across) / radius
        place, other = grid.near(np.arctan2(y, x), width, along - step, along + step)
        helices, position = helices.take(place), hits.position[other]
        length, across, off = helices.residuals(position, layer)
        sigma_across, sigma_along = helices.sigmas(length, layer)
        chi2 = (across / sigma_across) ** 2 + (off / sigma_along) ** 2
        depth = np.hypot(position[:, 0], position[:, 1]) if layer.barrel else position[:, 2]
        apart = np.abs(depth - (radius if layer.barrel else z)[place]) > OVERLAP
        good = np.flatnonzero(apart & (chi2 < CUT**2))
        place, other, chi2 = place[good], other[good], chi2[good]
        nearest = _first(place, chi2)
        place, other, chi2 = place[nearest], other[nearest], chi2[nearest]
        nearest = _first(other, chi2)
        found.append(np.stack([track[place[nearest]], other[nearest]]))
    track, hit = np.concatenate(found, axis=1)
    return track, hit


def _first(groups: Indices, values: Floats) -> Indices:
    """Return the index of the smallest value of each group."""
    order = np.lexsort((values, groups))
    return order[np.flatnonzero(np.diff(groups[order], prepend=-1))]
