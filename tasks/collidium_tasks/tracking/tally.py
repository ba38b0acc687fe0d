"""The tally of the task, which is the counts of each event, and the metrics, among them the TrackML score.

A metric is a line of RATIOS: a ratio of sums of two fields of EVENT (:class:`.matching.EventCounts`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from collidium.contracts.task import Draws
from collidium_tasks.tracking import bins
from collidium_tasks.tracking.matching import EventCounts

#: One record per event, so that merging is exact and events can be resampled.
EVENT = np.dtype(
    [
        ("event_id", np.int64),
        ("tracks", np.int64),
        ("counted_tracks", np.int64),
        ("fake_tracks", np.int64),
        ("particles", np.int64),
        ("duplicated_particles", np.int64),
        ("high_pt_particles", np.int64),
        ("high_pt_reconstructed", np.int64),
        ("accepted_particles", np.int64),
        ("accepted_found", np.int64),
        ("found_weight", np.float64),
        ("total_weight", np.float64),
        ("track_ids", np.uint64, (3,)),
        *((name, np.uint32, (2, binning.bins)) for name, binning in bins.ALL.items()),
    ]
)

#: Metric -> numerator and denominator, which are summed over events.
RATIOS = {
    "trackml_weighted_efficiency": ("found_weight", "total_weight"),
    "fake_rate": ("fake_tracks", "counted_tracks"),
    "duplicate_rate": ("duplicated_particles", "particles"),
    "physics_eff_pt1": ("high_pt_reconstructed", "high_pt_particles"),
    "double_majority_eff_pt1": ("accepted_found", "accepted_particles"),
}

#: A structured array of type EVENT, one record per event, in order of events.
EventTallies = npt.NDArray[Any]


def collect(counts: Iterable[EventCounts]) -> EventTallies:
    """Return the tally of some events."""
    return np.array([_record(count) for count in counts], EVENT)


def _record(count: EventCounts) -> tuple[Any, ...]:
    special = {"track_ids": count.track_ids or (0, 0, 0), **count.bins}
    return tuple(special[name] if name in special else getattr(count, name) for name in EVENT.names or ())


def merge(tallies: Sequence[EventTallies]) -> EventTallies:
    """Concatenate tallies."""
    return np.concatenate([np.empty(0, EVENT), *tallies])


def metrics(tallies: EventTallies) -> dict[str, float]:
    """Return every metric of RATIOS; they do not depend on the order of events."""
    return {name: _ratio(_sum(tallies[part]), _sum(tallies[whole])) for name, (part, whole) in RATIOS.items()}


def counts(tallies: EventTallies) -> dict[str, tuple[float, float]]:
    """Return numerator and denominator of the metrics that are ratios of integers."""
    return {
        name: (_sum(tallies[part]), _sum(tallies[whole]))
        for name, (part, whole) in RATIOS.items()
        if EVENT[part].kind != "f"
    }


def resample(tallies: Sequence[EventTallies], draws: Draws) -> list[dict[str, float]]:
    """Return the metrics of each draw of groups of events, from sums by group.

    Their rounding differs from that of :func:`metrics`, by about 1e-16.
    """
    drawn = np.array([np.bincount(draw, minlength=len(tallies)) for draw in draws], np.float64)

    def ratios(part: str, whole: str) -> list[float]:
        parts, wholes = (
            drawn @ np.array([group[name].sum() for group in tallies], np.float64) for name in (part, whole)
        )
        ratios: list[float] = np.divide(parts, wholes, out=np.zeros(len(draws)), where=wholes != 0).tolist()
        return ratios

    columns = {name: ratios(*fields) for name, fields in RATIOS.items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def warnings(tallies: EventTallies) -> list[str]:
    """Warn of a track id that occurs in several events, if the samples of ids contain one."""
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


def _sum(column: npt.NDArray[Any]) -> float:
    return math.fsum(column) if column.dtype.kind == "f" else int(column.sum())


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
