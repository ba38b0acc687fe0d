"""From seeds to tracks: take the hit that a helix through the last ones predicts, again and again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from collidium_tasks.tracking.baselines import Floats
from collidium_tasks.tracking.baselines.helix.detector import Hits
from collidium_tasks.tracking.baselines.helix.geometry import Helix, fit_helix
from collidium_tasks.tracking.baselines.helix.residuals import Prediction, arcs_ahead, compare, nearest_arcs

#: Last hits that predict the next; few, since particles lose energy and scatter.
LAST_HITS = 4

#: Farthest next hit, in mm along the track.
FARTHEST = 1300.0

#: The best hit is taken of those that come at most so much later than the first, in mm.
SAME_LAYER = 15.0

#: Slowest track that is followed, transverse momentum in GeV.
SLOWEST = 0.05

#: Triplets of hits that come within so many hits on a track are not tried as seeds again.
SEED_REACH = 6


@dataclass(frozen=True, slots=True)
class Track:
    """Hits in the order in which a particle passes them.

    ``points`` are the places where it does, in mm: the hits' positions, with what a long strip does not
    measure filled in from the helix. ``gain`` is the sum of the log likelihood ratios of the hits.
    """

    hits: list[int]
    points: list[Floats]
    gain: float

    def reversed(self) -> Track:
        return Track(self.hits[::-1], self.points[::-1], self.gain)

    def with_hit(self, hit: int, point: Floats, gain: float) -> Track:
        return Track([*self.hits, hit], [*self.points, point], self.gain + gain)

    def helix(self, hits: Hits, start: int, stop: int) -> Helix:
        """The helix through some successive hits, three or more."""
        part = self.hits[start:stop]
        return fit_helix(np.array(self.points[start:stop]), hits.across[part], hits.sigma_z[part])


def find(seeds: npt.NDArray[np.intp], hits: Hits, free: npt.NDArray[np.bool_], min_hits: int) -> list[Track]:
    """Tracks of at least ``min_hits`` free hits from seeds of shape (n, 3); they may share hits."""
    tried: set[tuple[int, ...]] = set()
    tracks = []
    for seed in seeds.tolist():
        if tuple(seed) in tried:
            continue
        track = follow(Track(seed, list(hits.position[seed]), 0.0), hits, free)
        if len(track.hits) >= min_hits:
            track = follow(track.reversed(), hits, free).reversed()
            tracks.append(track)
        tried.update(_triplets_on(track))
    return tracks


def _triplets_on(track: Track) -> Iterable[tuple[int, ...]]:
    for start in range(len(track.hits) - 2):
        nearby = track.hits[start + 1 : start + SEED_REACH]
        yield from ((track.hits[start], *pair) for pair in combinations(nearby, 2))


def follow(track: Track, hits: Hits, free: npt.NDArray[np.bool_]) -> Track:
    """The track with all hits that come after its last one."""
    while (longer := _with_next(track, hits, free)) is not None:
        track = longer
    return track


def _with_next(track: Track, hits: Hits, free: npt.NDArray[np.bool_]) -> Track | None:
    helix = track.helix(hits, -LAST_HITS, len(track.hits))
    if helix.transverse_momentum < SLOWEST:
        return None
    available = free.copy()
    available[track.hits] = False
    ahead = np.flatnonzero(available)
    arc = arcs_ahead(helix, hits, ahead)
    distance = arc / helix.sin_theta
    near = (arc > 1e-3) & (arc < np.pi * helix.radius) & (distance < FARTHEST)
    prediction = compare(helix, hits, ahead[near], arc[near], distance[near])
    best = _best(prediction, distance[near])
    if best is None:
        return None
    hit = int(prediction.hit[best])
    return track.with_hit(hit, _passed_at(hits, hit, prediction.point[best]), float(prediction.gain[best]))


def _best(prediction: Prediction, distance: Floats) -> int | None:
    """The hit with the largest gain among those that come first."""
    if not prediction.fits.any():
        return None
    first = prediction.fits & (distance < distance[prediction.fits].min() + SAME_LAYER)
    return int(np.argmax(np.where(first, prediction.gain, -np.inf)))


def _passed_at(hits: Hits, hit: int, predicted: Floats) -> Floats:
    """Where the particle passed a hit: the hit's position, on long strips only the measured part of it."""
    point: Floats = hits.position[hit].copy()
    if hits.long_strip[hit] and hits.endcap[hit]:
        point[:2] *= np.hypot(predicted[0], predicted[1]) / hits.radius[hit]
    elif hits.long_strip[hit]:
        point[2] = predicted[2]
    return point


#: Share of a track's hits that likelier tracks must leave to it.
OWN_HITS = 0.6

#: Farthest hit, in mm from the nearest of the track's own, that is taken in: overlapping sensors, double
#: layers, layers that were missed.
NEARBY = 150.0


def choose(tracks: list[Track], free: npt.NDArray[np.bool_], min_hits: int) -> list[Track]:
    """The likeliest tracks, without the hits of likelier ones; their hits are no longer free."""
    chosen = []
    for track in sorted(tracks, key=lambda track: track.gain, reverse=True):
        own = [place for place, hit in enumerate(track.hits) if free[hit]]
        if len(own) < max(min_hits, OWN_HITS * len(track.hits)):
            continue
        kept = Track([track.hits[place] for place in own], [track.points[place] for place in own], track.gain)
        free[kept.hits] = False
        chosen.append(kept)
    return chosen


def take_in(tracks: list[Track], hits: Hits, free: npt.NDArray[np.bool_]) -> list[Track]:
    """The tracks with free hits near them that fit; each goes to the track it fits best."""
    left = np.flatnonzero(free)
    gains = np.array([_gains_near(track, hits, left) for track in tracks]).reshape(len(tracks), len(left))
    longer = list(tracks)
    for place in np.flatnonzero((gains > 0).any(axis=0)).tolist():
        best, hit = int(np.argmax(gains[:, place])), int(left[place])
        longer[best] = longer[best].with_hit(hit, hits.position[hit], float(gains[best, place]))
        free[hit] = False
    return longer


def _gains_near(track: Track, hits: Hits, left: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """Largest gain of each hit with any stretch of the track nearby, 0 if it fits none; shape (left,)."""
    gains = np.zeros(len(left))
    for start in range(max(len(track.hits) - LAST_HITS + 1, 1)):
        stretch = track.hits[start : start + LAST_HITS]
        offset = hits.position[left][:, None] - hits.position[stretch][None]
        distance = np.linalg.norm(offset, axis=2).min(axis=1)
        near = distance < NEARBY
        helix = track.helix(hits, start, start + LAST_HITS)
        arc = nearest_arcs(helix, hits, left[near])
        prediction = compare(helix, hits, left[near], arc, distance[near])
        gains[near] = np.maximum(gains[near], np.where(prediction.fits, prediction.gain, 0.0))
    return gains
