"""Scores predictions as the engine does: blocks of events, pickled tallies, one merge at the end."""

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
    """A tally for each block of valid predictions, each pickled and unpickled as by a worker."""
    return [tally_of(task, block) for block in blocks(truth, predictions, cut)]


def tally_of(task: Task, block: Block) -> Tally:
    """Check and score one block of valid predictions."""
    problems = task.check(block)
    promise(not problems, f"check finds problems in valid predictions: {problems[:3]}")
    return through_pickle(task.score(block))


def blocks(truth: Tables, predictions: pa.Table, cut: Cut) -> list[Block]:
    """The blocks of the events listed."""
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
    """The tally as it arrives from another process."""
    return pickle.loads(pickle.dumps(tally))  # noqa: S301 -- made in the same line


def same(metrics: dict[str, float], others: dict[str, float]) -> bool:
    """Equal to the last bit; NaN equals itself, and is reported by another check."""
    return repr(sorted(metrics.items())) == repr(sorted(others.items()))
