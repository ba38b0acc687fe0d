"""The card of the task."""

from __future__ import annotations

from typing import Final

from collidium.contracts.digest import MODULUS
from collidium.contracts.task import Card, Column, EventRange, Metric

#: The slice begins with it.
FIRST_EVENT: Final = 0
#: Plausible seconds: from a microsecond to a year.
SECONDS: Final = (1e-6, 3e7)

_NOT_READ: Final = f"event {FIRST_EVENT} is not among the events that count"

CARD: Final = Card(
    name="data_loading",
    title="Data loading",
    description=(
        "Read all columns of the first 1000 events, which are public, from files on disk, and over HTTP from "
        "a hub with nothing kept on disk. `collidium bench data-loading` does it with any loader, takes the "
        "times and writes the one row that is asked for. The digest tells that the events were read, and is "
        "checked here. The times are what the submitter says they are: machines differ, so they compare "
        "loaders on one machine, and they earn nothing until an operator has seen them come about."
    ),
    dataset="ttbar_pu0",
    eval_events=EventRange(FIRST_EVENT, 1000),
    inputs=("tracker_hits",),
    columns=(
        Column(
            name="event_id", kind="integer", description=f"First event of the slice: always {FIRST_EVENT}."
        ),
        Column(name="events", kind="integer", description="How many events were read.", bounds=(1, 2**32)),
        Column(
            name="digest",
            kind="integer",
            description="What was read, as `collidium.contracts.digest` tells it: the sum over events.",
            bounds=(0, MODULUS - 1),
        ),
        Column(
            name="seconds_local",
            kind="float",
            description="Time to read them from disk: the median of several readings.",
            bounds=SECONDS,
        ),
        Column(
            name="seconds_streaming",
            kind="float",
            description="Time to read them over HTTP: the median of several readings.",
            bounds=SECONDS,
        ),
    ),
    left_out="There is one row. A digest of fewer events, or columns, is refused.",
    truth_sources=("tracker_hits",),
    rows_of="slices",
    metrics=(
        Metric(
            name="events_per_second_local",
            higher_is_better=True,
            description="Events read in a second from disk.",
            formula="events / seconds_local",
            reward=30,
            bounds=(0, 2**32 / SECONDS[0]),
            self_reported=True,
            missing_when=_NOT_READ,
        ),
        Metric(
            name="events_per_second_streaming",
            higher_is_better=True,
            description="Events read in a second over HTTP.",
            formula="events / seconds_streaming",
            reward=30,
            bounds=(0, 2**32 / SECONDS[0]),
            self_reported=True,
            missing_when=_NOT_READ,
        ),
    ),
)
