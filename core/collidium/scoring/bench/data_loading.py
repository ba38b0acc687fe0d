"""Reading a slice of a dataset from disk and from its hub, timed: a submission to the task data_loading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.digest import event_digests, together
from collidium.contracts.task import EventRange
from collidium.datasets.access import Fetched
from collidium.datasets.reading.shards import EventTable
from collidium.hub.repository import address_of
from collidium.hub.sources import HubDataset
from collidium.scoring.bench import Digests, Loader, Measured, Reading, measure

#: Number of events whose digests are computed at once.
_BLOCK_EVENTS: Final = 100

#: Called with the current source (``disk``, ``hub``), and the number of readings done and of all.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Slice:
    """Events of one table, downloaded from a repository of a hub."""

    place: HubDataset
    fetched: Fetched
    config: str
    table: str
    events: range

    def from_disk(self) -> Reading:
        """The reading of downloaded shards."""
        shards = tuple(str(self.fetched.directory / path) for path in self.fetched.shards[self.table])
        return Reading(str(self.fetched.directory), self.config, self.table, self.events, shards, False)

    def from_hub(self) -> Reading:
        """The reading over HTTP, at the same commit."""
        commit = self.fetched.revision
        shards = (address_of(self.place.repo, commit, path) for path in self.fetched.shards[self.table])
        return Reading(
            source=f"{self.place.page}/tree/{commit}",
            config=self.config,
            table=self.table,
            events=self.events,
            shards=tuple(f"{self.place.endpoint}{address}" for address in shards),
            streaming=True,
            token=self.place.token,
        )

    def digests(self) -> Digests:
        """The digest of each event; raises UnusableDataset if events are missing."""
        table = EventTable(self.table, [Path(shard) for shard in self.from_disk().shards])
        table.refuse_missing(EventRange(self.events.start, self.events.stop))
        found: dict[int, int] = {}
        for start in range(self.events.start, self.events.stop, _BLOCK_EVENTS):
            block = EventRange(start, min(start + _BLOCK_EVENTS, self.events.stop))
            rows = table.load(block)
            found |= zip(
                np.asarray(rows.column("event_id")).tolist(), event_digests(rows).tolist(), strict=True
            )
        return found


@dataclass(frozen=True, slots=True)
class Times:
    """The times of a loader for a slice."""

    first_event: int
    events: int
    digest: int
    local: Measured
    streaming: Measured

    def predictions(self) -> pa.Table:
        """The single row of predictions."""
        return pa.table(
            {
                "event_id": pa.array([self.first_event], pa.int64()),
                "events": pa.array([self.events], pa.int64()),
                "digest": pa.array([self.digest], pa.int64()),
                "seconds_local": pa.array([self.local.median], pa.float64()),
                "seconds_streaming": pa.array([self.streaming.median], pa.float64()),
            }
        )

    def write(self, path: Path) -> None:
        """Write the predictions."""
        pq.write_table(self.predictions(), path)


def time_slice(part: Slice, loader: Loader, *, repeats: int, progress: Progress | None = None) -> Times:
    """Read a slice from disk and from its hub with the same loader, each ``repeats`` times.

    Raises WrongReading if it does not return the events of the slice, and any error of the loader.
    """
    expected = part.digests()

    def timed(reading: Reading, where: str) -> Measured:
        report = partial(progress, where) if progress else None
        return measure(loader, reading, expected, repeats=repeats, progress=report)

    return Times(
        first_event=part.events.start,
        events=len(expected),
        digest=together(np.array(list(expected.values()), np.uint64)),
        local=timed(part.from_disk(), "disk"),
        streaming=timed(part.from_hub(), "hub"),
    )
