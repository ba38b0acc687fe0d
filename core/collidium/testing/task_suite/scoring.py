"""Scores predictions as the engine does: by blocks of events, with pickled tallies, merged at the end."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.task import Block, EventRange, Tables, Tally, Task
from collidium.testing.conformance.promise import promise

#: The events of each block.
Cut = Sequence[Sequence[int]]


def score(task: Task, truth: Tables, predictions: pa.Table, cut: Cut) -> dict[str, float]:
    """The metrics of valid predictions, scored in these blocks."""
    return task.metrics(task.merge(tallies(task, truth, predictions, cut)))


def tallies(task: Task, truth: Tables, predictions: pa.Table, cut: Cut) -> list[Tally]:
    """Check and score valid predictions by blocks. Tallies are pickled and unpickled as by a worker."""
    scored = []
    for block in blocks(truth, predictions, cut):
        problems = task.check(block)
        promise(not problems, f"check finds problems in valid predictions: {problems[:3]}")
        scored.append(through_pickle(task.score(block)))
    return scored


def blocks(truth: Tables, predictions: pa.Table, cut: Cut) -> list[Block]:
    """Cut truth and predictions into blocks of the listed events."""
    return [
        Block(EventRange(min(events), max(events) + 1), of_events(predictions, events), only(truth, events))
        for events in cut
    ]


def only(tables: Tables, events: Sequence[int]) -> dict[str, pa.Table]:
    """The rows of some events of all tables."""
    return {name: of_events(table, events) for name, table in tables.items()}


def of_events(table: pa.Table, events: Sequence[int]) -> pa.Table:
    """The rows of some events of a table with any integer ``event_id``."""
    wanted = pa.array(events, pa.int64())
    return table.filter(pc.is_in(pc.cast(table.column("event_id"), pa.int64()), wanted))


def through_pickle(tally: Tally) -> Any:
    """Pickle and unpickle a tally, as if it were sent between processes."""
    return pickle.loads(pickle.dumps(tally))  # noqa: S301 -- made in the same line


def same(metrics: dict[str, float], others: dict[str, float]) -> bool:
    """Whether metrics are exactly equal. NaN equals itself here: another check reports it."""
    return repr(sorted(metrics.items())) == repr(sorted(others.items()))
