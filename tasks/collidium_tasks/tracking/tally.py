"""Counts of events, put together, and the metrics that follow from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from collidium_tasks.tracking.matching import EventCounts

#: One record per event, so that merging is exact whatever the cut, and events can be resampled.
EVENT = np.dtype(
    [
        ("event_id", np.int64),
        ("tracks", np.int64),
        ("fake_tracks", np.int64),
        ("particles", np.int64),
        ("duplicated_particles", np.int64),
        ("high_pt_particles", np.int64),
        ("high_pt_reconstructed", np.int64),
        ("found_weight", np.float64),
        ("total_weight", np.float64),
        ("track_ids", np.uint64, (3,)),
    ]
)

#: A structured array of type EVENT, one record per event, in order of events.
EventTallies = npt.NDArray[Any]


def collect(counts: Iterable[EventCounts]) -> EventTallies:
    """The tally of some events."""
    records = [
        tuple(
            (count.track_ids or (0, 0, 0)) if name == "track_ids" else getattr(count, name)
            for name in EVENT.names or ()
        )
        for count in counts
    ]
    return np.array(records, EVENT)


def merge(tallies: Sequence[EventTallies]) -> EventTallies:
    """The tally of all their events."""
    return np.concatenate([np.empty(0, EVENT), *tallies])


def metrics(tallies: EventTallies) -> dict[str, float]:
    """The four metrics; weights are added without rounding, so the order of events does not matter."""
    return {
        "trackml_weighted_efficiency": _ratio(
            math.fsum(tallies["found_weight"]), math.fsum(tallies["total_weight"])
        ),
        "fake_rate": _fraction(tallies, "fake_tracks", "tracks"),
        "duplicate_rate": _fraction(tallies, "duplicated_particles", "particles"),
        "physics_eff_pt1": _fraction(tallies, "high_pt_reconstructed", "high_pt_particles"),
    }


def warnings(tallies: EventTallies) -> list[str]:
    """Tells of a track id that occurs in several events, if the few that are kept of each show one."""
    with_tracks = tallies[tallies["tracks"] > 0]
    ids = with_tracks["track_ids"].ravel()
    events = np.repeat(with_tracks["event_id"], EVENT["track_ids"].shape[0])
    order = np.lexsort((events, ids))
    ids, events = ids[order], events[order]
    again = np.flatnonzero((ids[1:] == ids[:-1]) & (events[1:] != events[:-1]))
    if not len(again):
        return []
    first = int(again[0])
    return [
        f"Track ids occur in more than one event, for example track {ids[first]} in events "
        f"{events[first]} and {events[first + 1]}. Tracks never reach across events: those of each event "
        "were scored on their own."
    ]


def _fraction(tallies: EventTallies, part: str, whole: str) -> float:
    return _ratio(int(tallies[part].sum()), int(tallies[whole].sum()))


def _ratio(part: float, whole: float) -> float:
    """``part / whole``, and 0 of nothing."""
    return part / whole if whole else 0.0
