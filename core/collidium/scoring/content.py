"""Checks the values of decoded predictions: nulls, numbers that are none or out of bounds, unknown events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, inf, isfinite
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.card import in_digits
from collidium.contracts.task import Column, EventRange, Problem
from collidium.scoring.problems import MAX_EXAMPLES

Mask = npt.NDArray[np.bool_]

OUT_OF_BOUNDS: Final = "out-of-bounds"


def check(
    table: pa.Table, columns: Sequence[Column], events: EventRange, *, in_order: bool = False
) -> tuple[list[Problem], pa.Table]:
    """The problems of these rows, and the rows that may be looked at further.

    Those are rows of events that are asked for, with a value in every column. For a value out of bounds
    another one stands in, so that other problems of its row are reported, too. ``in_order`` says that the
    rows are sorted by event, none of them null.
    """
    problems: list[Problem] = []
    good: Mask | None = None
    kept = table
    for number, column in enumerate(columns):
        values = table.column(column.name)
        for code, detail, wrong in _findings(column, values, events, in_order=in_order):
            if not wrong.any():
                continue
            problems.append(_problem(code, detail, column.name, table, wrong))
            within = _within(column, values.type) if code == OUT_OF_BOUNDS else None
            if within is None:
                good = ~wrong if good is None else good & ~wrong
            else:
                mended = pc.if_else(pa.array(wrong), within, values)
                kept = kept.set_column(number, column.name, mended)
    return problems, kept if good is None else kept.filter(pa.array(good))


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
    column: Column, values: pa.ChunkedArray[Any], events: EventRange, *, in_order: bool = False
) -> Iterator[tuple[str, str, Mask]]:
    name = column.name
    given = None
    if values.null_count:
        nulls = np.asarray(values.is_null())
        yield "null-value", "has nulls; every row needs a value", nulls
        given = ~nulls
        values = values.fill_null(
            pa.scalar(events.start if name == "event_id" else 0, pa.int64()).cast(values.type)
        )
    if pa.types.is_floating(values.type):
        finite = np.isfinite(as_numpy(values))
        yield "non-finite", "has numbers that are not finite", ~finite
        given = finite if given is None else given & finite
    if name == "event_id" and len(values):
        ids = as_numpy(values)
        lowest, highest = (ids[0], ids[-1]) if in_order else (ids.min(), ids.max())
        # Nearly always that is all: no mask is made.
        if lowest < events.start or highest >= events.stop:
            detail = f"has events outside of {events.start} to {events.stop - 1}"
            yield "unknown-event", detail, (ids < events.start) | (ids >= events.stop)
    if column.bounds != (-inf, inf) and len(values):
        outside = _outside(as_numpy(values), *column.bounds)
        if outside is not None:
            detail = f"has values that are not {_in_words(*column.bounds)}"
            yield OUT_OF_BOUNDS, detail, outside if given is None else outside & given


def _outside(numbers: npt.NDArray[Any], lowest: float, highest: float) -> Mask | None:
    """Which numbers are out of bounds, exactly also where no float holds them; None where none is."""
    # As above; Python compares integers with floats exactly, and what is no number fails the comparison.
    if lowest <= numbers.min().item() and numbers.max().item() <= highest:
        return None
    outside = np.zeros(len(numbers), np.bool_)
    if isfinite(lowest):
        outside |= numbers < _bound(ceil(lowest), lowest, numbers)
    if isfinite(highest):
        outside |= numbers > _bound(floor(highest), highest, numbers)
    return outside


def _bound(whole: int, number: float, numbers: npt.NDArray[Any]) -> int | np.float64:
    """A bound that is compared with an array in a type that holds both."""
    return np.float64(number) if numbers.dtype.kind == "f" else whole


def _within(column: Column, kind: pa.DataType) -> pa.Scalar[Any] | None:
    """A value within bounds; None where the type has none."""
    lowest, highest = column.bounds
    if pa.types.is_floating(kind):
        return pa.scalar(min(max(0.0, lowest), highest), pa.float64()).cast(kind)
    number = 0 if lowest <= 0 <= highest else ceil(lowest) if lowest > 0 else floor(highest)
    try:
        return pa.scalar(number, kind)
    except (pa.ArrowInvalid, OverflowError):
        return None


def _in_words(lowest: float, highest: float) -> str:
    minimum, maximum = in_digits(lowest), in_digits(highest)
    if highest == inf:
        return f"{minimum} or more"
    return f"{maximum} or less" if lowest == -inf else f"within {minimum} and {maximum}"


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
