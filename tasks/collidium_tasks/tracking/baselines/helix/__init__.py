"""A track finder from the positions of hits alone, vectorised over seeds.

1. Seeds: pairs of hits in neighbouring layers that come from near the beam line, and with each pair the hits
   of the next layer that the circle through the beam line and the line in z predict.
2. All seeds are followed outwards at once, layer by layer: the helix through the last three hits predicts
   the next, and the likeliest hit is taken if it is more likely than one by chance.
3. Of tracks that share hits the likelier one keeps them.
4. Where sensors overlap, a layer is hit twice: tracks take in the second hits.

Then again with looser limits among the hits that are left. Python loops over layers, never over hits or
tracks.
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
    """Limits of one search among the hits that are left.

    Seeds have a transverse momentum (GeV) of at least ``min_pt``, begin in the first ``seed_layers`` layers,
    and come from within three times ``beam_radius`` of the beam line and from ``beam_length`` on either side
    of the origin (mm). Tracks need hits in ``min_hits`` layers.
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

#: Largest deviation of a hit from its track, in standard deviations.
CUT: Final = 3.5

#: Minimum log of the likelihood that a hit is the track's over the likelihood that it is there by chance.
MIN_GAIN: Final = 0.5

#: Minimum sum of the gains of the hits that a track has in addition to its seed.
MIN_TRACK_GAIN: Final = 5.0

#: Layers that a track passes without a hit before it is given up.
MAX_HOLES: Final = 1

#: Share of its hits that a track keeps where it shares them with longer tracks.
OWN_HITS: Final = 0.6

#: Distance of overlapping sensors, in mm along the direction in which layers follow.
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
    """Number of the track of each hit, from 0, or -1; shape (hits,). ``found`` is kept and added to."""
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
    """Hits of an event and, last, the beam line; shapes (hits + 1,), lengths in mm."""

    position: Floats  # (hits + 1, 3)
    #: Number of the layer; one more than there are where it is unknown.
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
        """The free hits of each layer."""
        places = np.where(free, self.layer[:-1], len(LAYERS))
        return [
            LayerHits.of(layer, np.flatnonzero(places == number), self.position)
            for number, layer in enumerate(LAYERS)
        ]

    def helices(self, points: Indices, beam_radius: float | None = None) -> Helices:
        """The helices through three hits each, or through the beam line and two; ``points`` is (n, 3)."""
        across = self.across[points]
        if beam_radius is not None:
            across[:, 0] = beam_radius
        return Helices.through(
            self.position[points], across, self.along[points], self.disc[points], beam_radius is None
        )


def seeds(search: Search, hits: Hits, grids: list[LayerHits]) -> Indices:
    """Triplets of hits in successive layers, one particle's by their places; shape (n, 3)."""
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
    """Pairs of hits that a particle from near the beam line may pass, shape (n, 2)."""
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
    """From where to where, in z or radius (mm), particles pass a layer that passed hits before.

    They come from anywhere along the beams, with any curvature up to ``curvature``, in 1/mm.
    """
    length = search.beam_length
    if layer.barrel:
        ratios = (layer.at / radius, arc(layer.at, curvature) / arc(radius, curvature))
        ends = [start + (z - start) * ratio for start in (-length, length) for ratio in ratios]
        slack = layer.depth * (1 + (np.abs(z) + length) / radius)
        low, high = np.minimum.reduce(ends) - slack, np.maximum.reduce(ends) + slack
        return np.maximum(low, -layer.high), np.minimum(high, layer.high)
    # The arc to the disc over that to the hit, from the nearer and the farther end of the beams.
    shortest = (layer.at + length) / (np.abs(z) + length) * arc(radius, curvature)
    longest = (layer.at - length) / np.maximum(np.abs(z) - length, 1.0)
    half = np.minimum(shortest * curvature / 2, np.pi / 2)
    low = np.clip(2 / curvature * np.sin(half) - layer.depth, radius, layer.high)
    high = np.clip(radius * longest + layer.depth, low, layer.high)
    return np.where(z > 0, low, -high), np.where(z > 0, high, -low)


def candidates(helices: Helices, hits: Hits, grid: LayerHits) -> tuple[Indices, Indices, Floats, Indices]:
    """Hits of a layer that helices may pass next.

    Returns pairs of a helix, by its number, and a hit, with the hit's gain (see MIN_GAIN), shape (pairs,);
    and the numbers of the helices that pass the layer well within its limits.
    """
    layer = grid.layer
    length = helices.arc_to(layer)
    near = np.flatnonzero(~np.isnan(length))
    helices, length = helices.take(near), length[near]
    x, y = helices.at(length)
    radius, direction = np.hypot(x, y), helices.phi + helices.curvature * length
    along = helices.z + helices.cot_theta * length if layer.barrel else np.copysign(radius, helices.cot_theta)
    sigma_across, sigma_along = helices.sigmas(length, layer)
    # Hits lie before and behind the place where the layer is crossed.
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
    """All seeds, shape (n, 3), followed outwards.

    Returns the hit of each track in each layer, -1 where it has none, shape (n, layers), and the sum of
    their gains, shape (n,).
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
    """Tracks that share no hit, from tracks and gains as of :func:`followed`; shape (n, layers).

    A hit belongs to its track of largest gain. Tracks to which all of their hits belong stay, the others
    lose the hits of these, and so on until all are decided.
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
    """Free hits on a second sensor of layers in which tracks, shape (n, layers), have a hit.

    Returns pairs of a track, by its number, and a hit, each of shape (pairs,).
    """
    short = np.array([not layer.long for layer in LAYERS])
    order = np.argsort((tracks < 0) | ~short, axis=1, kind="stable")
    inner = np.take_along_axis(tracks, order, axis=1)
    points = np.count_nonzero((tracks >= 0) & short, axis=1)
    found = []
    for number, grid in enumerate(grids):
        track = np.flatnonzero((tracks[:, number] >= 0) & (points >= 3))
        hit = tracks[track, number]
        # The three hits from this layer on, or the last three.
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
    """The place of the smallest value of each group."""
    order = np.lexsort((values, groups))
    return order[np.flatnonzero(np.diff(groups[order], prepend=-1))]
