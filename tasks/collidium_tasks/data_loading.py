"""The data loading benchmark: read a slice of a dataset as fast as possible, from disk and from its hub.

There is no baseline: one made from tables in memory would not show the time of reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from collidium.contracts.digest import MODULUS, event_digests, together
from collidium.contracts.task import (
    Block,
    Card,
    Column,
    EventRange,
    Metric,
    Problem,
    Tables,
    Task,
    UnusableTruth,
)
from collidium.hookspecs import hookimpl

#: First event of the slice.
FIRST_EVENT: Final = 0
#: Plausible seconds: from a microsecond to a year.
SECONDS: Final = (1e-6, 3e7)

_NOT_READ: Final = f"event {FIRST_EVENT} is not among the scored events"

CARD: Final = Card(
    name="data_loading",
    title="Data loading",
    description=(
        "Read all columns of the first 1000 events, which are public, from files on disk, and over HTTP from "
        "a hub without a cache on disk. `collidium bench data-loading` does this with any loader, measures "
        "the times and writes the predictions, which are one row. The digest proves that the events were "
        "read and is checked here. The times are self-reported: machines differ, so they compare loaders "
        "on one machine, and they earn nothing until an operator has verified them."
    ),
    dataset="ttbar_pu0",
    eval_events=EventRange(FIRST_EVENT, 1000),
    inputs=("tracker_hits",),
    columns=(
        Column(
            name="event_id", kind="integer", description=f"First event of the slice: always {FIRST_EVENT}."
        ),
        Column(name="events", kind="integer", description="Number of events read.", bounds=(1, 2**32)),
        Column(
            name="digest",
            kind="integer",
            description="Digest of the events read (`collidium.contracts.digest`), summed over events.",
            bounds=(0, MODULUS - 1),
        ),
        Column(
            name="seconds_local",
            kind="float",
            description="Time to read them from disk: the median of several repetitions.",
            bounds=SECONDS,
        ),
        Column(
            name="seconds_streaming",
            kind="float",
            description="Time to read them over HTTP: the median of several repetitions.",
            bounds=SECONDS,
        ),
    ),
    left_out="There is one row. A digest of fewer events or columns is rejected.",
    truth_sources=("tracker_hits",),
    rows_of="slices",
    metrics=(
        Metric(
            name="events_per_second_local",
            title="Events per second, local",
            higher_is_better=True,
            description="Events read per second from disk.",
            formula="events / seconds_local",
            reward=30,
            bounds=(0, 2**32 / SECONDS[0]),
            self_reported=True,
            missing_when=_NOT_READ,
        ),
        Metric(
            name="events_per_second_streaming",
            title="Events per second, streamed",
            higher_is_better=True,
            description="Events read per second over HTTP.",
            formula="events / seconds_streaming",
            reward=30,
            bounds=(0, 2**32 / SECONDS[0]),
            self_reported=True,
            missing_when=_NOT_READ,
        ),
    ),
)


#: Metric -> the column with its time.
TIMES: Final = {metric.name: metric.name.replace("events_per_second", "seconds") for metric in CARD.metrics}


@dataclass(frozen=True, slots=True)
class LoadingTally:
    """Number and digest of truth events, and the submitted row if it is of one of them."""

    events: int
    digest: int
    row: dict[str, Any] | None


def _problem(code: str, column: str, row: dict[str, Any], detail: str) -> Problem:
    return Problem(code, detail, column, row["event_id"], examples=({column: row[column]},))


class DataLoadingTask(Task):
    """Verifies that a slice was read, and ranks by self-reported times.

    The only row of a submission is about all events, so it is checked after tallies are merged.
    """

    card: ClassVar[Card] = CARD
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        (name,) = self.card.truth_sources
        try:
            digests = event_digests(tables[name])
        except ValueError as error:
            raise UnusableTruth(f"table {name}: {error}") from error
        events = tables[name].column("event_id").cast(pa.uint32()).combine_chunks()
        first = np.asarray(events) == FIRST_EVENT
        return {
            "slices": pa.table({"event_id": events.filter(pa.array(first))}),
            "events": pa.table({"event_id": events, "digest": pa.array(digests)}),
        }

    def check(self, block: Block) -> list[Problem]:
        ids = np.asarray(block.predictions.column("event_id"))
        other = int(np.count_nonzero(ids != FIRST_EVENT))
        again = len(ids) - other - 1
        found = []
        if other:
            detail = f"The only row has event_id {FIRST_EVENT}, the first event of the slice."
            example = {"event_id": int(ids[ids != FIRST_EVENT][0])}
            found.append(Problem("unknown-slice", detail, "event_id", count=other, examples=(example,)))
        if again > 0:
            detail = "The slice was submitted before; it has one row."
            found.append(Problem("duplicate-row", detail, "event_id", FIRST_EVENT, again))
        return found

    def score(self, block: Block) -> LoadingTally:
        truth = block.truth["events"]
        rows = block.predictions.to_pylist()
        digests = np.asarray(truth.column("digest"), np.uint64)
        return LoadingTally(truth.num_rows, together(digests), rows[0] if rows else None)

    def merge(self, tallies: Sequence[LoadingTally]) -> LoadingTally:
        rows = [tally.row for tally in tallies if tally.row is not None]
        return LoadingTally(
            events=sum(tally.events for tally in tallies),
            digest=sum(tally.digest for tally in tallies) % MODULUS,
            row=rows[0] if rows else None,
        )

    def check_whole(self, tally: LoadingTally) -> list[Problem]:
        row = tally.row
        if row is None:
            return []
        found = []
        if row["events"] != tally.events:
            found.append(_problem("wrong-events", "events", row, f"The slice has {tally.events} events."))
        if row["digest"] != tally.digest:
            detail = "The values read differ from the dataset: other events, columns, or another release."
            found.append(_problem("wrong-digest", "digest", row, detail))
        return found

    def metrics(self, tally: LoadingTally) -> dict[str, float]:
        row = tally.row
        if row is None:
            return {}
        return {name: row["events"] / float(row[time]) for name, time in TIMES.items()}

    def oracle(self, truth: Tables) -> pa.Table:
        events = truth["events"]
        seconds = pa.array([SECONDS[0]], pa.float64())
        return pa.table(
            {
                "event_id": pa.array([FIRST_EVENT], pa.int64()),
                "events": pa.array([events.num_rows], pa.int64()),
                "digest": pa.array([together(np.asarray(events.column("digest"), np.uint64))], pa.int64()),
                "seconds_local": seconds,
                "seconds_streaming": seconds,
            }
        )


__all__ = ["DataLoadingTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [DataLoadingTask()]
