"""Honest reconstructions from positions alone: something to beat, and something to start from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


#: Bins in azimuth and in pseudorapidity, the latter between -4 and 4.
PHI_BINS = 64
ETA_BINS = 32
LARGEST_ETA = 4.0

#: A track needs so many hits.
MIN_HITS = 3


def naive(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Tracks of every event in the table ``tracker_hits``, which needs x, y and z (mm).

    Returns event_id, hit_id and track_id, one row per hit; -1 where a bin has fewer than MIN_HITS hits.
    """
    return predictions((event, _tracks(event)) for event in events_of(tables["tracker_hits"]))


def _tracks(event: EventHits) -> npt.NDArray[np.int64]:
    bins = _direction_bin(event)
    hits_in_bin = np.bincount(bins, minlength=PHI_BINS * ETA_BINS)
    return np.where(hits_in_bin[bins] >= MIN_HITS, bins, -1)


def _direction_bin(event: EventHits) -> npt.NDArray[np.int64]:
    """Number of the bin in azimuth and pseudorapidity that each hit lies in, shape (hits,)."""
    phi = (np.arctan2(event.y, event.x) / (2 * np.pi)) % 1.0
    eta = np.arcsinh(event.z / np.maximum(np.hypot(event.x, event.y), 1e-9))
    phi_bin = np.minimum(np.floor(phi * PHI_BINS), PHI_BINS - 1)
    eta_bin = np.clip(np.floor((eta / LARGEST_ETA + 1) / 2 * ETA_BINS), 0, ETA_BINS - 1)
    return (eta_bin * PHI_BINS + phi_bin).astype(np.int64)


def ckf(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The tracks that come with the dataset: those of a combinatorial Kalman filter, as a reference.

    Needs ``hit_ids`` of the table ``tracks`` in addition to ``tracker_hits``, so it is no baseline of the
    task, whose inputs are hits alone. Returns predictions as :func:`naive`.
    """
    rows = {event: row for row, event in enumerate(tables["tracks"].column("event_id").to_pylist())}
    lists = tables["tracks"].column("hit_ids").combine_chunks()
    return predictions(
        (event, _of_lists(event, lists[rows[event.event_id]].values))
        for event in events_of(tables["tracker_hits"])
    )


def _of_lists(event: EventHits, lists: pa.ListArray[Any]) -> npt.NDArray[np.int64]:
    """Number of the list in which each hit's id stands, or -1."""
    ids = np.asarray(lists.flatten()).astype(np.int64)
    order = np.argsort(event.hit_id)
    place = order[np.searchsorted(event.hit_id, ids, sorter=order) % max(len(order), 1)]
    known = event.hit_id[place] == ids
    numbers = np.full(len(event.x), -1, np.int64)
    numbers[place[known]] = np.repeat(np.arange(len(lists)), np.asarray(lists.value_lengths()))[known]
    return numbers
