"""Honest reconstructions from positions alone: something to beat, and something to start from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths, positions_in_event

Floats = npt.NDArray[np.float64]

#: Track ids of one event lie below this, so that those of different events differ.
IDS_PER_EVENT = 2**20


@dataclass(frozen=True, slots=True)
class EventHits:
    """Hits of one event: ids and positions in mm, each of shape (hits,). No truth."""

    event_id: int
    hit_id: npt.NDArray[np.integer[Any]]
    x: Floats
    y: Floats
    z: Floats


def events_of(tracker_hits: pa.Table) -> Iterator[EventHits]:
    """The events of a dataset table, one row per event with lists of hits."""
    names = [name for name in ("x", "y", "z", "hit_id") if name in tracker_hits.column_names]
    lengths = list_lengths(tracker_hits, "x")
    flat = flatten(tracker_hits, names)
    columns = {name: np.asarray(flat.column(name)) for name in names}
    ids = columns.get("hit_id", positions_in_event(lengths))
    stops = np.cumsum(lengths).tolist()
    for event_id, length, stop in zip(
        np.asarray(tracker_hits.column("event_id")).tolist(), lengths.tolist(), stops, strict=True
    ):
        rows = slice(stop - length, stop)
        x, y, z = (columns[name][rows].astype(np.float64) for name in ("x", "y", "z"))
        yield EventHits(event_id, ids[rows], x, y, z)


def predictions(tracks: Iterable[tuple[EventHits, npt.NDArray[np.int64]]]) -> pa.Table:
    """Predictions of events from each hit's track within its event: 0 to IDS_PER_EVENT, or -1."""
    events, hits, ids = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for event, track in tracks:
        events.append(np.full(len(track), event.event_id, np.int64))
        hits.append(event.hit_id.astype(np.int64))
        ids.append(np.where(track < 0, -1, event.event_id * IDS_PER_EVENT + track))
    return pa.table(
        {"event_id": np.concatenate(events), "hit_id": np.concatenate(hits), "track_id": np.concatenate(ids)}
    )
