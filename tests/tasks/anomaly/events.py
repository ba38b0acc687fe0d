"""Events by hand: enough of each table for the task, no physics claimed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Block, EventRange
from collidium_tasks.anomaly import AnomalyTask

TASK = AnomalyTask()

#: The channels of the events 1 to 6.
CHANNELS = ("ttbar", "zprime", "zmumu", "zee", "susy_gmsb", "ttbar")


def tables(channels: Sequence[str] = CHANNELS, first: int = 1) -> dict[str, pa.Table]:
    """Dataset tables of an event of each channel, numbered from ``first`` on."""
    random = np.random.default_rng(len(channels))
    ids = pa.array(range(first, first + len(channels)), pa.uint32())
    sizes = random.integers(3, 12, len(channels))

    def lists(lowest: float, highest: float) -> pa.Array:
        values = [random.uniform(lowest, highest, size).astype(np.float32) for size in sizes]
        return pa.array(values, pa.list_(pa.float32()))

    place = {name: lists(-1000, 1000) for name in ("x", "y", "z")}
    cells = {
        **place,
        "total_energy": lists(0.1, 50),
        "detector": lists(9, 15).cast(pa.list_(pa.uint8()), False),
    }
    bounds = {"d0": (-3, 3), "phi": (-3, 3), "theta": (0.3, 2.8), "qop": (0.1, 2)}
    return {
        "tracker_hits": pa.table({"event_id": ids, **place}),
        "calo_hits": pa.table({"event_id": ids, **cells}),
        "tracks": pa.table({"event_id": ids, **{name: lists(*limits) for name, limits in bounds.items()}}),
        "channels": pa.table({"event_id": ids, "channel": pa.array([[one] for one in channels])}),
    }


def truth(channels: Sequence[str] = CHANNELS, first: int = 1) -> dict[str, pa.Table]:
    return TASK.prepare({"channels": tables(channels, first)["channels"]})


def block(
    scores: dict[int, float], channels: Sequence[str] = CHANNELS, kind: pa.DataType | None = None
) -> Block:
    """Scores by event, and the truth of all events."""
    rows = {
        "event_id": pa.array(sorted(scores), pa.int64()),
        "anomaly_score": pa.array([scores[event] for event in sorted(scores)], kind or pa.float64()),
    }
    return Block(EventRange(1, len(channels) + 1), pa.table(rows), truth(channels))
