"""Turns events written down in Python into dataset tables, predictions and blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import Block, EventRange, Problem
from collidium_tasks.tracking import TrackingTask

from .reference import Row, TrueEvent

TASK = TrackingTask()

INT64 = pa.int64()
UINT64 = pa.uint64()


def dataset(
    truth: Mapping[int, TrueEvent], *, weights: bool = True, hit_ids: pa.DataType | None = UINT64
) -> dict[str, pa.Table]:
    """Dataset tables, one row per event; without ``hit_ids`` a hit's id is its place.

    Without ``weights`` there is nothing to make weights from either: hits have no positions.
    """
    events = sorted(truth)

    def lists(kind: pa.DataType, values: Sequence[Sequence[object]]) -> pa.Array:
        return pa.array(values, pa.list_(kind))

    hits = {
        "event_id": pa.array(events, pa.uint32()),
        "particle_id": lists(pa.uint64(), [[hit.particle_id for hit in truth[e].hits] for e in events]),
    }
    if hit_ids is not None:
        hits["hit_id"] = lists(hit_ids, [[hit.hit_id for hit in truth[e].hits] for e in events])
    if weights:
        hits["weight"] = lists(pa.float32(), [[hit.weight for hit in truth[e].hits] for e in events])
    particles = {
        "event_id": pa.array(events, pa.uint32()),
        "particle_id": lists(pa.uint64(), [[p.particle_id for p in truth[e].particles] for e in events]),
        "pt": lists(pa.float64(), [[p.pt for p in truth[e].particles] for e in events]),
        "eta": lists(pa.float64(), [[p.eta for p in truth[e].particles] for e in events]),
        "primary": lists(pa.bool_(), [[p.primary for p in truth[e].particles] for e in events]),
    }
    return {"tracker_hits": pa.table(hits), "particles": pa.table(particles)}


def prepare(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Truth; hits weigh the same where the tables have no weights."""
    weighted = "weight" in tables["tracker_hits"].column_names
    return TASK.prepare_with(tables, {"hits": "weighted" if weighted else "uniform"})


def predictions(
    rows: Sequence[Row],
    hit_ids: pa.DataType = INT64,
    track_ids: pa.DataType = INT64,
    event_ids: pa.DataType = INT64,
) -> pa.Table:
    """Predictions sorted by event, in the order of ``rows`` within each."""
    ordered = sorted(rows, key=lambda row: row.event_id)
    return pa.table(
        {
            "event_id": pa.array([row.event_id for row in ordered], event_ids),
            "hit_id": pa.array([row.hit_id for row in ordered], hit_ids),
            "track_id": pa.array([row.track_id for row in ordered], track_ids),
        }
    )


def blocks(truth: Mapping[str, pa.Table], submitted: pa.Table, cuts: Sequence[int]) -> list[Block]:
    """Blocks of the events between successive cuts."""

    def part(table: pa.Table, start: int, stop: int) -> pa.Table:
        event = pc.cast(table.column("event_id"), pa.int64())
        return table.filter(pc.and_(pc.greater_equal(event, start), pc.less(event, stop)))

    return [
        Block(
            EventRange(start, stop),
            part(submitted, start, stop),
            {name: part(table, start, stop) for name, table in truth.items()},
        )
        for start, stop in pairwise(cuts)
    ]


def one_block(tables: Mapping[str, pa.Table], submitted: pa.Table) -> Block:
    """Everything in a single block."""
    return Block(EventRange(0, 2**32), submitted, prepare(tables))


def metrics(truth: Mapping[int, TrueEvent], rows: Sequence[Row]) -> dict[str, float]:
    """The task's metrics of rows that must be free of problems."""
    block = one_block(dataset(truth), predictions(rows))
    assert TASK.check(block) == []
    return TASK.metrics(TASK.merge([TASK.score(block)]))


def problems(truth: Mapping[int, TrueEvent], rows: Sequence[Row]) -> list[Problem]:
    """The task's problems with rows."""
    return TASK.check(one_block(dataset(truth), predictions(rows)))


def chunked(table: pa.Table, rows: int) -> pa.Table:
    """The same table in pieces of a few rows, as row groups come from a file."""
    pieces = [table.slice(start, rows) for start in range(0, table.num_rows, rows)]
    return pa.concat_tables(pieces) if pieces else table
