"""The tracking benchmark for fast methods: events per second at an efficiency of at least one half.

Times are summed in integer nanoseconds, since sums of floats depend on their order.

Each event needs a row, or leaving out the slow ones would pay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from collidium.contracts.model import ModelInterface
from collidium.contracts.task import (
    Block,
    Card,
    Column,
    Curve,
    Draws,
    EventRange,
    Metric,
    Reconstruction,
    Tables,
    Task,
)
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking import MODELS, TrackingTask, TracksTask
from collidium_tasks.tracking.baselines import helix, naive
from collidium_tasks.tracking.tally import EventTallies

TRACKING: Final = TrackingTask.card

EFFICIENCY: Final = TRACKING.primary_metric.name

#: Minimum efficiency for ``events_per_second``.
MIN_EFFICIENCY: Final = 0.5

#: Minimum and maximum seconds of an event: a nanosecond and a day.
MIN_SECONDS, MAX_SECONDS = 1e-9, 86_400.0

_INCOMPLETE: Final = "an event has no row"

CARD: Final = replace(
    TRACKING,
    name="tracking_latency",
    title="Tracking at speed",
    description=(
        f"{TRACKING.description} Report for each event the time of your method, from hits in memory to "
        "tracks in memory, one event after the other on one machine. Time to load or compile before the "
        "first event does not count. Submit every event: without rows of an event its time is unknown."
    ),
    eval_events=EventRange(99_000, 100_000),
    left_out="Hits that are not submitted belong to no track: their weight is lost. A submission in which an "
    "event has no row has no speed and no rank.",
    columns=(
        *TRACKING.columns,
        Column(
            name="seconds",
            kind="float",
            description="Time spent on the event, the same in all its rows.",
            bounds=(MIN_SECONDS, MAX_SECONDS),
            one_per="event",
        ),
    ),
    metrics=(
        Metric(
            name="events_per_second",
            title="Events per second",
            higher_is_better=True,
            description="Number of events over the time spent on them.",
            formula="events / sum over events of seconds",
            reward=30,
            bounds=(0, 1e9),
            self_reported=True,
            missing_when=f"the efficiency is below {MIN_EFFICIENCY} or {_INCOMPLETE}",
        ),
        Metric(
            name="wallclock_s",
            title="Wall-clock time, s",
            higher_is_better=False,
            description="Time spent on all events, in seconds.",
            formula="sum over events of seconds, added in whole nanoseconds",
            bounds=(0, inf),
            self_reported=True,
            missing_when=_INCOMPLETE,
        ),
        replace(TRACKING.primary_metric, reward=30),
    ),
    ranks_measured=True,
)


NANOSECONDS: Final = 10**9


@dataclass(frozen=True, slots=True)
class Time:
    """Number of events, number of events with rows, and the time spent on the latter."""

    events: int = 0
    timed: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class TimedTally:
    """The tally of the tracking task, and the time of the same events."""

    tracks: EventTallies
    time: Time


def timed(tracks: EventTallies, predictions: pa.Table) -> TimedTally:
    """Return the tally of a block whose predictions are sorted by event, with one time per event."""
    events, seconds = (np.asarray(predictions.column(name)) for name in ("event_id", "seconds"))
    first = np.flatnonzero(np.diff(events.astype(np.int64), prepend=-1))
    nanoseconds = np.rint(seconds[first].astype(np.float64) * NANOSECONDS).astype(np.int64)
    return TimedTally(tracks, Time(len(tracks), len(first), int(nanoseconds.sum())))


def total(times: Sequence[Time]) -> Time:
    """Return the sum of times."""
    return Time(
        sum(time.events for time in times),
        sum(time.timed for time in times),
        sum(time.nanoseconds for time in times),
    )


def _metrics(efficiency: float, time: Time) -> dict[str, float]:
    """Return the metrics: no time unless every event has rows, no speed below MIN_EFFICIENCY."""
    metrics = {EFFICIENCY: efficiency}
    if time.timed == time.events:
        metrics["wallclock_s"] = time.nanoseconds / NANOSECONDS
        if efficiency >= MIN_EFFICIENCY:
            metrics["events_per_second"] = time.events * NANOSECONDS / time.nanoseconds
    return metrics


@dataclass(frozen=True, slots=True)
class Timed:
    """A reconstruction that measures the time of each event."""

    reconstruct: Reconstruction
    clock: Callable[[], float] = perf_counter

    def __call__(self, tables: Tables) -> pa.Table:
        events = len(tables["tracker_hits"])
        empty = with_seconds(self.reconstruct({name: table.slice(0, 0) for name, table in tables.items()}), 0)
        return pa.concat_tables([empty, *(self._event(tables, number) for number in range(events))])

    def _event(self, tables: Tables, number: int) -> pa.Table:
        one = {name: table.slice(number, 1) for name, table in tables.items()}
        begin = self.clock()
        predictions = self.reconstruct(one)
        return with_seconds(predictions, max(self.clock() - begin, MIN_SECONDS))


def with_seconds(predictions: pa.Table, seconds: float) -> pa.Table:
    """Add ``seconds`` to predictions of the tracking task."""
    return predictions.append_column("seconds", pa.array(np.full(predictions.num_rows, float(seconds))))


_TRACKING: Final = TrackingTask()


class TrackingLatencyTask(TracksTask):
    """Scores tracks as the tracking task does; the engine checks that each event has one time."""

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "2"

    def score(self, block: Block) -> TimedTally:
        return timed(_TRACKING.score(block), block.predictions)

    def merge(self, tallies: Sequence[TimedTally]) -> TimedTally:
        tracks = _TRACKING.merge([tally.tracks for tally in tallies])
        return TimedTally(tracks, total([tally.time for tally in tallies]))

    def metrics(self, tally: TimedTally) -> dict[str, float]:
        return _metrics(_TRACKING.metrics(tally.tracks)[EFFICIENCY], tally.time)

    def resample(self, tallies: Sequence[TimedTally], draws: Draws) -> list[dict[str, float]]:
        tracking = _TRACKING.resample([tally.tracks for tally in tallies], draws)
        return [
            _metrics(metrics[EFFICIENCY], total([tallies[group].time for group in draw]))
            for metrics, draw in zip(tracking, draws, strict=True)
        ]

    def curves(self, tally: TimedTally) -> list[Curve]:
        return _TRACKING.curves(tally.tracks)

    def warnings(self, tally: TimedTally) -> list[str]:
        missing = tally.time.events - tally.time.timed
        warnings = [f"{missing} events have no row: the total time is unknown"] if missing else []
        return [*warnings, *_TRACKING.warnings(tally.tracks)]

    def model_interface(self) -> ModelInterface:
        return replace(MODELS, measured={"seconds": "seconds"})

    def oracle(self, truth: Tables) -> pa.Table:
        return with_seconds(_TRACKING.oracle(truth), MIN_SECONDS)

    def baselines(self) -> Mapping[str, Reconstruction]:
        return {"naive": Timed(naive), "helix": Timed(helix.reconstruct)}


__all__ = ["TrackingLatencyTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [TrackingLatencyTask()]
