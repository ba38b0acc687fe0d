"""Which tracks stay, and which of the hits left over are theirs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from collidium_tasks.tracking.baselines.helix.detector import Hits
from collidium_tasks.tracking.baselines.helix.following import LAST_HITS, Track
from collidium_tasks.tracking.baselines.helix.residuals import compare, nearest_arcs

#: Share of a track's hits that likelier tracks must leave to it.
OWN_HITS = 0.6

#: Farthest hit, in mm from the nearest of the track's own, that is taken in: overlapping sensors, double
#: layers, layers that were missed.
BESIDE = 150.0


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
        near = distance < BESIDE
        helix = track.helix(hits, start, start + LAST_HITS)
        arc = nearest_arcs(helix, hits, left[near])
        prediction = compare(helix, hits, left[near], arc, distance[near])
        gains[near] = np.maximum(gains[near], np.where(prediction.fits, prediction.gain, 0.0))
    return gains
