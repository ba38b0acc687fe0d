"""The card of the task."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Final

from collidium.contracts.task import Column, EventRange, Metric
from collidium_tasks.tracking import TrackingTask

TRACKING: Final = TrackingTask.card

EFFICIENCY: Final = TRACKING.primary_metric.name

#: Below it, speed is worth nothing.
LEAST_EFFICIENCY: Final = 0.5

#: Minimum and maximum seconds of an event: a nanosecond, the unit of their sum, and a day.
LEAST_SECONDS, MOST_SECONDS = 1e-9, 86_400.0

_INCOMPLETE: Final = "an event has no row"

CARD: Final = replace(
    TRACKING,
    name="tracking_latency",
    title="Tracking at speed",
    description=(
        f"{TRACKING.description} Say for each event how long your method worked on it, from hits in memory "
        "to tracks in memory, one event after the other on one machine; what was loaded or compiled once, "
        "before the first event, does not count. Leave no event out: of an event without rows nobody knows "
        "how long it would have taken."
    ),
    eval_events=EventRange(99_000, 100_000),
    left_out="Hits that are not submitted are in no track: their weight is lost. An event without any row "
    "leaves the submission without speed and place.",
    columns=(
        *TRACKING.columns,
        Column(
            name="seconds",
            kind="float",
            description="Time spent on the event, the same in all its rows.",
            bounds=(LEAST_SECONDS, MOST_SECONDS),
            one_per="event",
        ),
    ),
    metrics=(
        Metric(
            name="events_per_second",
            higher_is_better=True,
            description="Events over the time spent on all of them.",
            formula="events / sum over events of seconds",
            reward=30,
            bounds=(0, 1e9),
            self_reported=True,
            missing_when=f"the efficiency is below {LEAST_EFFICIENCY} or {_INCOMPLETE}",
        ),
        Metric(
            name="wallclock_s",
            higher_is_better=False,
            description="Time spent on all events, in seconds.",
            formula="sum over events of seconds, added in whole nanoseconds",
            bounds=(0, inf),
            self_reported=True,
            missing_when=_INCOMPLETE,
        ),
        replace(TRACKING.primary_metric, reward=30),
    ),
)
