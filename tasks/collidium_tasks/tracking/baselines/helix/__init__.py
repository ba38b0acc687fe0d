"""A reconstruction by following helices: what a few hundred lines of honest code reach.

1. Triplets of neighbouring hits that lie on one helix are seeds (:mod:`.seeding`).
2. A helix through the last four hits of a track predicts where the next one should be; the track takes
   it, and so on outwards, then back inwards (:mod:`.following`).
3. Of the tracks that share hits the likelier one stays, and takes in remaining hits close to it
   (:func:`.following.choose`).

First for tracks from the beam line, then, among the hits that are left, for tracks from anywhere. Only
positions are looked at. Made for events of up to a few thousand hits: time and memory grow with their square.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium_tasks.tracking.baselines import EventHits, events_of, predictions
from collidium_tasks.tracking.baselines.helix.detector import Hits, hits_of
from collidium_tasks.tracking.baselines.helix.following import Track, choose, find, take_in
from collidium_tasks.tracking.baselines.helix.seeding import triplets

#: Maximum number of hits in an event.
MAX_HITS = 5_000


@dataclass(frozen=True, slots=True)
class Search:
    """One search for tracks among the hits that are left."""

    from_beam_line: bool
    min_hits: int


SEARCHES = (Search(from_beam_line=True, min_hits=5), Search(from_beam_line=False, min_hits=4))


def reconstruct(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Tracks of every event in the table ``tracker_hits``, which needs x, y and z (mm).

    Returns event_id, hit_id and track_id, one row per hit; -1 for hits of no track. Raises ValueError for
    an event with more than MAX_HITS hits.
    """
    return predictions((event, track_numbers(event)) for event in events_of(tables["tracker_hits"]))


def track_numbers(event: EventHits) -> npt.NDArray[np.int64]:
    """Number of the track of each hit, from 0, or -1; shape (hits,)."""
    if len(event.x) > MAX_HITS:
        raise ValueError(f"event {event.event_id} has {len(event.x)} hits, more than {MAX_HITS}")
    hits = hits_of(event)
    free = np.ones(len(event.x), np.bool_)
    tracks = [track for search in SEARCHES for track in _run(search, hits, free)]
    numbers = np.full(len(event.x), -1, np.int64)
    for number, track in enumerate(tracks):
        numbers[track.hits] = number
    return numbers


def _run(search: Search, hits: Hits, free: npt.NDArray[np.bool_]) -> list[Track]:
    """The tracks that one search finds; their hits are no longer free."""
    seeds = triplets(hits, free, search.from_beam_line)
    tracks = choose(find(seeds, hits, free, search.min_hits), free, search.min_hits)
    return take_in(tracks, hits, free)
