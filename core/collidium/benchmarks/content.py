"""Checks what decoded predictions say: nulls, numbers that are none, events that are not asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.benchmarks.problems import MAX_EXAMPLES
from collidium.contracts.task import Column, EventRange, Problem

Mask = npt.NDArray[np.bool_]


def check(
    table: pa.Table, columns: Sequence[Column], events: EventRange
) -> tuple[list[Problem], Mask | None]:
    """The problems of these rows, and which rows have none; None where that is all of them."""
    problems: list[Problem] = []
    good: Mask | None = None
    for column in columns:
        for code, detail, wrong in _findings(column, table.column(column.name), events):
            if wrong.any():
                good = ~wrong if good is None else good & ~wrong
                problems.append(_problem(code, detail, column.name, table, wrong))
    return problems, good


def as_numpy(column: pa.ChunkedArray[Any]) -> npt.NDArray[Any]:
    """A column without nulls as an array of its own width; shares memory where it is in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0).to_numpy()
    return np.asarray(column.combine_chunks())


def rows_below(events: npt.NDArray[Any], event: int) -> int:
    """How many of the sorted ``events`` are below ``event``, which their type need not be able to hold."""
    if event > np.iinfo(events.dtype).max:
        return len(events)
    return int(np.searchsorted(events, events.dtype.type(event)))


def _findings(
    column: Column, values: pa.ChunkedArray[Any], events: EventRange
) -> Iterator[tuple[str, str, Mask]]:
    name = column.name
    if values.null_count:
        yield "null-value", f"column {name} has nulls; every row needs a value", np.asarray(values.is_null())
        values = values.fill_null(
            pa.scalar(events.start if name == "event_id" else 0, pa.int64()).cast(values.type)
        )
    if pa.types.is_floating(values.type):
        yield "non-finite", f"column {name} has numbers that are not finite", ~np.isfinite(as_numpy(values))
    if name == "event_id" and len(values):
        ids = as_numpy(values)
        # Two passes without a mask: nearly always they are all that is needed.
        if ids.min() < events.start or ids.max() >= events.stop:
            detail = f"column event_id has events outside of {events.start} to {events.stop - 1}"
            yield "unknown-event", detail, (ids < events.start) | (ids >= events.stop)


def _problem(code: str, detail: str, column: str, table: pa.Table, wrong: Mask) -> Problem:
    examples = table.take(np.flatnonzero(wrong)[:MAX_EXAMPLES]).to_pylist()
    return Problem(
        code,
        detail,
        column,
        event_id=examples[0]["event_id"],
        count=int(np.count_nonzero(wrong)),
        examples=tuple(examples),
    )
