"""Checks of truth, the result of :meth:`Task.prepare`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from collidium.testing.conformance.promise import promise
from collidium.testing.task_suite.scoring import only
from collidium.testing.task_suite.subject import Subject


def truth_is_well_formed(subject: Subject) -> None:
    """Truth tables are sorted by event_id (uint32), without nulls, and rows_of is one of them."""
    rows_of = subject.task.card.rows_of
    promise(rows_of in subject.truth, f"prepare must return the card's rows_of table {rows_of!r}")
    for name, table in subject.truth.items():
        _check_table(name, table, subject.events)


def _check_table(name: str, table: pa.Table, events: list[int]) -> None:
    promise("event_id" in table.column_names, f"truth table {name!r} needs a column event_id")
    ids = table.column("event_id")
    promise(ids.type == pa.uint32(), f"event_id of truth table {name!r} must be uint32, not {ids.type}")
    nulls = [column for column in table.column_names if table.column(column).null_count]
    promise(not nulls, f"truth table {name!r} has nulls in {', '.join(nulls)}")
    numbers = np.asarray(ids, dtype=np.int64)
    promise(bool(np.all(np.diff(numbers) >= 0)), f"truth table {name!r} must be sorted by event_id")
    strange = sorted(set(numbers.tolist()) - set(events))
    promise(not strange, f"truth table {name!r} has events that are not in its sources: {strange[:3]}")


def truth_is_independent_of_blocks(subject: Subject) -> None:
    """Truth is the same, and has one schema, whether events are prepared together or one by one."""
    by_event = [subject.task.prepare(only(subject.sources, [event])) for event in subject.events]
    for name, table in subject.truth.items():
        pieces = [block.get(name) for block in by_event]
        for piece in pieces:
            known = piece is not None and piece.schema == table.schema
            promise(known, f"truth table {name!r} must have one schema in every block")
        whole = pa.concat_tables([piece for piece in pieces if piece is not None])
        promise(
            bool(whole.equals(table)),
            f"truth table {name!r} must be the same whether events are prepared together or one by one",
        )
