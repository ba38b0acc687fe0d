"""The baselines of the tracking task, which use positions of hits only: `naive`, and modules of the others.

`naive` also exists as two ONNX models, which return track ids and edges between hits. The models compare
directions with the limits of bins, in double precision and without computing angles, so that they find the
same tracks as the baseline. They need onnx.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten, list_lengths, positions_in_event
from collidium_tasks.networks import Files, files, graph

Floats = npt.NDArray[np.float64]

#: Track ids of event n are n times this and above, so that ids of different events differ.
IDS_PER_EVENT = 2**20

#: ONNX operators that compute the bin of each hit: the number of limits below its direction.
_BINS = """
    distance_x = Abs(x)
    distance_y = Abs(y)
    around = Add(distance_x, distance_y)
    safe_around = Max(around, tiny)
    part = Div(x, safe_around)
    descent = Sub(one, part)
    sign_y = Sign(y)
    is_below = Less(sign_y, nil)
    ascent = Sub(four, descent)
    turn = Where(is_below, ascent, descent)
    turns = Unsqueeze(turn, last)
    passed = GreaterOrEqual(turns, phi_limits)
    passed_number = Cast <to = 7> (passed)
    phi_bin = ReduceSum <keepdims = 0> (passed_number, last)
    squares_x = Mul(x, x)
    squares_y = Mul(y, y)
    squares = Add(squares_x, squares_y)
    radius = Sqrt(squares)
    safe_radius = Max(radius, tiny)
    slope = Div(z, safe_radius)
    slopes = Unsqueeze(slope, last)
    beyond = GreaterOrEqual(slopes, eta_limits)
    beyond_number = Cast <to = 7> (beyond)
    eta_bin = ReduceSum <keepdims = 0> (beyond_number, last)
    row = Mul(eta_bin, phi_bins)
    bin = Add(row, phi_bin)
"""
_MANIFEST = """task = "{task}"
batch = "event"

[inputs]
x = {{ source = "tracker_hits.x", dtype = "float64", unit = "mm" }}
y = {{ source = "tracker_hits.y", dtype = "float64", unit = "mm" }}
z = {{ source = "tracker_hits.z", dtype = "float64", unit = "mm" }}
"""


@dataclass(frozen=True, slots=True)
class EventHits:
    """Ids and positions (mm) of the hits of one event, each of shape (hits,)."""

    event_id: int
    hit_id: npt.NDArray[np.integer[Any]]
    x: Floats
    y: Floats
    z: Floats


def events_of(tracker_hits: pa.Table) -> Iterator[EventHits]:
    """Yield the events of a table ``tracker_hits``."""
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
    """Return predictions from the number of each hit's track in its event: 0 to IDS_PER_EVENT, or -1."""
    events, hits, ids = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for event, track in tracks:
        events.append(np.full(len(track), event.event_id, np.int64))
        hits.append(event.hit_id.astype(np.int64))
        ids.append(np.where(track < 0, -1, event.event_id * IDS_PER_EVENT + track))
    return pa.table(
        {"event_id": np.concatenate(events), "hit_id": np.concatenate(hits), "track_id": np.concatenate(ids)}
    )


#: Numbers of bins in azimuth and in pseudorapidity, and the maximum |eta| of the latter.
PHI_BINS = 64
ETA_BINS = 32
LARGEST_ETA = 4.0

#: Minimum number of hits of a track.
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
    """Return the number of each hit's bin in azimuth and pseudorapidity, shape (hits,)."""
    phi = (np.arctan2(event.y, event.x) / (2 * np.pi)) % 1.0
    eta = np.arcsinh(event.z / np.maximum(np.hypot(event.x, event.y), 1e-9))
    phi_bin = np.minimum(np.floor(phi * PHI_BINS), PHI_BINS - 1)
    eta_bin = np.clip(np.floor((eta / LARGEST_ETA + 1) / 2 * ETA_BINS), 0, ETA_BINS - 1)
    return (eta_bin * PHI_BINS + phi_bin).astype(np.int64)


def ckf(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the tracks of table ``tracks``, from a combinatorial Kalman filter, as a reference.

    It needs ``hit_ids`` of ``tracks``, which is not an input of the task, so it is not one of its baselines.
    Returns predictions as :func:`naive`.
    """
    rows = {event: row for row, event in enumerate(tables["tracks"].column("event_id").to_pylist())}
    lists = tables["tracks"].column("hit_ids").combine_chunks()
    return predictions(
        (event, _of_lists(event, lists[rows[event.event_id]].values))
        for event in events_of(tables["tracker_hits"])
    )


def _of_lists(event: EventHits, lists: pa.ListArray[Any]) -> npt.NDArray[np.int64]:
    """Return the number of the list that contains each hit's id, or -1."""
    ids = np.asarray(lists.flatten()).astype(np.int64)
    order = np.argsort(event.hit_id)
    place = order[np.searchsorted(event.hit_id, ids, sorter=order) % max(len(order), 1)]
    known = event.hit_id[place] == ids
    numbers = np.full(len(event.x), -1, np.int64)
    numbers[place[known]] = np.repeat(np.arange(len(lists)), np.asarray(lists.value_lengths()))[known]
    return numbers


def examples(task: str) -> dict[str, Callable[[], Files]]:
    """Return both models, for a task with the inputs of tracking."""
    return {"labels": partial(labels_model, task), "edges": partial(edges_model, task)}


def _constants() -> dict[str, npt.NDArray[Any] | np.generic]:
    phi = np.arange(1, PHI_BINS) * (2 * np.pi / PHI_BINS)
    eta = (np.arange(1, ETA_BINS) / ETA_BINS * 2 - 1) * LARGEST_ETA
    descent = 1 - np.cos(phi) / (np.abs(np.cos(phi)) + np.abs(np.sin(phi)))
    return {
        "tiny": np.float64(1e-9),
        "nil": np.float64(0),
        "one": np.float64(1),
        "four": np.float64(4),
        "last": np.array([1]),
        # Increases with the azimuth: 0 along x, 1 along y, 2 along -x, 3 along -y.
        "phi_limits": np.where(np.sin(phi) < -1e-12, 4 - descent, descent),
        "eta_limits": np.sinh(eta - 1e-15),  # allow for rounding of simulated hits at 0
        "phi_bins": np.int64(PHI_BINS),
    }


def labels_model(task: str) -> Files:
    """Return the model in which hits of the same direction form a track, numbered by the graph."""
    model = graph(
        f"""labels (double[N] x, double[N] y, double[N] z) => (int64[N] track_id) {{
            {_BINS}
            zeros = ConstantOfShape <value = int64[1] {{0}}> (all_bins)
            shape = Shape(bin)
            each = Expand(unit, shape)
            counts = ScatterElements <reduction = "add"> (zeros, bin, each)
            hits = Gather(counts, bin)
            enough = GreaterOrEqual(hits, min_hits)
            track_id = Where(enough, bin, none)
        }}""",
        all_bins=np.array([ETA_BINS * PHI_BINS]),
        unit=np.int64(1),
        none=np.int64(-1),
        min_hits=np.int64(MIN_HITS),
        **_constants(),
    )
    return files(model, _MANIFEST.format(task=task) + '\n[outputs]\ntrack_id = "track_id"\n')


def edges_model(task: str) -> Files:
    """Return the model that connects each hit to the next one of the same direction."""
    model = graph(
        f"""edges (double[N] x, double[N] y, double[N] z) => (int64[2, E] edges, float[E] scores) {{
            {_BINS}
            size = Shape(bin)
            ordered, order = TopK <axis = 0, largest = 0, sorted = 1> (bin, size)
            from_all = Slice(order, first, minus_one)
            to_all = Slice(order, second, far)
            bin_from = Slice(ordered, first, minus_one)
            bin_to = Slice(ordered, second, far)
            same = Equal(bin_from, bin_to)
            scores = Cast <to = 1> (same)
            row_from = Unsqueeze(from_all, first)
            row_to = Unsqueeze(to_all, first)
            edges = Concat <axis = 0> (row_from, row_to)
        }}""",
        first=np.array([0]),
        second=np.array([1]),
        minus_one=np.array([-1]),
        far=np.array([2**62]),
        **_constants(),
    )
    postprocess = (
        '[postprocess]\nkind = "components"\nedges = "edges"\nscores = "scores"\n'
        f"cut = 0.5\nmin_hits = {MIN_HITS}\n"
    )
    return files(model, f"{_MANIFEST.format(task=task)}\n[outputs]\n\n{postprocess}")
