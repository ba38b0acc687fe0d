"""Events by hand: jets with the flavours that are asked for, and tracks near them; no physics claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Block, EventRange
from collidium.datasets.schemas import SCHEMAS
from collidium_tasks.jets import JetsTask

TASK = JetsTask()

#: The flavours of the jets of events 1 to 5; event 3 has none.
FLAVOURS = ((5, 0, 0), (5, 4), (), (0, 4, 5, 0), (0,))

Probabilities = tuple[float, float, float]


def tables(flavours: Sequence[Sequence[int]] = FLAVOURS, first: int = 1) -> dict[str, pa.Table]:
    """Tables ``jets`` and ``tracks`` of some events, numbered from ``first`` on."""
    random = np.random.default_rng(len(flavours))
    ids = range(first, first + len(flavours))
    return {
        "jets": _table("jets", ids, [_jets(random, of) for of in flavours]),
        "tracks": _table("tracks", ids, [_tracks(random, 6 * len(of) + 2) for of in flavours]),
    }


def truth(flavours: Sequence[Sequence[int]] = FLAVOURS, first: int = 1) -> dict[str, pa.Table]:
    return TASK.prepare({"jets": tables(flavours, first)["jets"]})


def block(
    probabilities: Mapping[tuple[int, int], Probabilities],
    flavours: Sequence[Sequence[int]] = FLAVOURS,
    kind: pa.DataType | None = None,
) -> Block:
    """Probabilities of b, c and light by event and jet, and the truth of all jets of events 1, 2, …"""
    return Block(EventRange(1, len(flavours) + 1), predictions(probabilities, kind), truth(flavours))


def predictions(
    probabilities: Mapping[tuple[int, int], Probabilities], kind: pa.DataType | None = None
) -> pa.Table:
    rows = sorted(probabilities.items(), key=lambda row: row[0][0])
    columns: dict[str, Any] = {
        "event_id": pa.array([event for (event, _), _ in rows], pa.int64()),
        "jet_id": pa.array([jet for (_, jet), _ in rows], pa.int64()),
    }
    for place, name in enumerate(("prob_b", "prob_c", "prob_light")):
        columns[name] = pa.array([three[place] for _, three in rows], kind or pa.float64())
    return pa.table(columns)


def _jets(random: np.random.Generator, flavours: Sequence[int]) -> dict[str, list[Any]]:
    count = len(flavours)
    return {
        "jet_id": list(range(count)),
        "pt": sorted(random.uniform(20, 200, count).tolist(), reverse=True),
        "eta": random.uniform(-2, 2, count).tolist(),
        "phi": random.uniform(-3, 3, count).tolist(),
        "mass": random.uniform(2, 20, count).tolist(),
        "constituents": [[place] for place in range(count)],
        "flavour": list(flavours),
    }


def _tracks(random: np.random.Generator, count: int) -> dict[str, list[Any]]:
    return {
        "track_id": list(range(count)),
        "d0": random.normal(0, 0.2, count).tolist(),
        "z0": random.normal(30, 0.2, count).tolist(),
        "phi": random.uniform(-3, 3, count).tolist(),
        "theta": random.uniform(0.3, 2.8, count).tolist(),
        "qop": (1 / random.uniform(-20, 20, count)).tolist(),
        "majority_particle_id": [1] * count,
        "hit_ids": [[place] for place in range(count)],
    }


def _table(name: str, ids: range, events: Sequence[dict[str, list[Any]]]) -> pa.Table:
    schema = SCHEMAS[name]
    columns = [pa.array(ids, pa.uint32())]
    columns += [pa.array([event[field.name] for event in events], field.type) for field in list(schema)[1:]]
    return pa.Table.from_arrays(columns, schema=schema)
