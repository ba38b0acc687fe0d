"""Times of events, put together without rounding, and the metrics that follow from them.

Seconds are added as whole nanoseconds: floats would add up to something else in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from collidium_tasks.tracking.tally import EventTallies
from collidium_tasks.tracking_latency.card import EFFICIENCY, LEAST_EFFICIENCY

NANOSECONDS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Time:
    """Of some events: how many there are, how many have rows, and the time spent on these."""

    events: int = 0
    timed: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class TimedTally:
    """What tracking counts, and the time of the same events."""

    tracks: EventTallies
    time: Time


def timed(tracks: EventTallies, predictions: pa.Table) -> TimedTally:
    """The tally of a block, whose predictions are sorted by event and have one time for each."""
    events, seconds = (np.asarray(predictions.column(name)) for name in ("event_id", "seconds"))
    first = np.flatnonzero(np.diff(events.astype(np.int64), prepend=-1))
    nanoseconds = np.rint(seconds[first].astype(np.float64) * NANOSECONDS).astype(np.int64)
    return TimedTally(tracks, Time(len(tracks), len(first), int(nanoseconds.sum())))


def together(times: Sequence[Time]) -> Time:
    """The time of all their events."""
    return Time(
        sum(time.events for time in times),
        sum(time.timed for time in times),
        sum(time.nanoseconds for time in times),
    )


def metrics(efficiency: float, time: Time) -> dict[str, float]:
    """The metrics that there are: no time of what is incomplete, and no speed of what finds too little."""
    metrics = {EFFICIENCY: efficiency}
    if time.timed == time.events:
        metrics["wallclock_s"] = time.nanoseconds / NANOSECONDS
        if efficiency >= LEAST_EFFICIENCY:
            metrics["events_per_second"] = time.events * NANOSECONDS / time.nanoseconds
    return metrics
