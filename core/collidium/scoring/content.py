"""Checks the values of decoded predictions: nulls, non-finite and out-of-bounds numbers, unknown events.

Also checks columns that must have one value within each event or within the whole file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
DIFFERENT_VALUES: Final = "different-values"


def check(
    table: pa.Table, columns: Sequence[Column], events: EventRange, *, in_order: bool = False
) -> tuple[list[Problem], pa.Table]:
    """Return the problems of these rows, and the rows for further checks.

    Those are rows of known events with a value in every column. Values out of bounds are replaced by valid
    ones, so that other problems of their rows are reported, too. ``in_order``: the rows are sorted by event,
    without nulls.
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
    """A column without nulls as an array of its own width; shares memory if it is one chunk."""
    if column.num_chunks == 1:
        return column.chunk(0).to_numpy()
    return np.asarray(column.combine_chunks())


def rows_below(events: npt.NDArray[Any], event: int) -> int:
    """The number of sorted ``events`` below ``event``, which may exceed the range of their type."""
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
        # The common case needs no mask.
        if lowest < events.start or highest >= events.stop:
            detail = f"has events outside of {events.start} to {events.stop - 1}"
            yield "unknown-event", detail, (ids < events.start) | (ids >= events.stop)
    if column.bounds != (-inf, inf) and len(values):
        outside = _outside(as_numpy(values), *column.bounds)
        if outside is not None:
            detail = f"has values that are not {_in_words(*column.bounds)}"
            yield OUT_OF_BOUNDS, detail, outside if given is None else outside & given


def _outside(numbers: npt.NDArray[Any], lowest: float, highest: float) -> Mask | None:
    """Which numbers are out of bounds, exact for large integers, too; None if there are none."""
    # Python compares integers with floats exactly, and NaN fails the comparison.
    if lowest <= numbers.min().item() and numbers.max().item() <= highest:
        return None
    outside = np.zeros(len(numbers), np.bool_)
    if isfinite(lowest):
        outside |= numbers < _bound(ceil(lowest), lowest, numbers)
    if isfinite(highest):
        outside |= numbers > _bound(floor(highest), highest, numbers)
    return outside


def _bound(whole: int, number: float, numbers: npt.NDArray[Any]) -> int | np.float64:
    """A bound in a type in which it can be compared with the array."""
    return np.float64(number) if numbers.dtype.kind == "f" else whole


def _within(column: Column, kind: pa.DataType) -> pa.Scalar[Any] | None:
    """A value within bounds; None if the type has none."""
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


@dataclass(frozen=True, slots=True)
class Spread:
    """The smallest and the largest value of a column in some rows, each with a row that has it."""

    smallest: Any
    smallest_row: Mapping[str, Any]
    #: Number of rows with the smallest value.
    smallest_rows: int
    largest: Any
    largest_row: Mapping[str, Any]
    rows: int

    def joined(self, other: Spread) -> Spread:
        """The spread of the rows of both; ``other`` has the later events."""
        joined = replace(self, rows=self.rows + other.rows)
        if other.smallest < self.smallest:
            joined = replace(
                joined,
                smallest=other.smallest,
                smallest_row=other.smallest_row,
                smallest_rows=other.smallest_rows,
            )
        elif other.smallest == self.smallest:
            joined = replace(joined, smallest_rows=self.smallest_rows + other.smallest_rows)
        if other.largest > self.largest:
            joined = replace(joined, largest=other.largest, largest_row=other.largest_row)
        return joined


#: By column, for columns with one value in the whole file.
Spreads = dict[str, Spread]


def within_events(table: pa.Table, columns: Sequence[Column]) -> list[Problem]:
    """The problems of columns with one value per event; ``table`` has whole events, sorted."""
    problems = []
    for column in columns:
        if column.one_per == "event" and table.num_rows:
            differing = _differing(table, column.name)
            problems += [] if differing is None else [differing]
    return problems


def spreads_of(table: pa.Table, columns: Sequence[Column]) -> Spreads:
    """The spreads of columns that have one value in the whole file."""
    wanted = [column.name for column in columns if column.one_per == "file"]
    return {name: _spread(table, name) for name in wanted} if table.num_rows else {}


def joined(spreads: Iterable[Spreads]) -> Spreads:
    """Merge the spreads of consecutive rows."""
    found: Spreads = {}
    for part in spreads:
        for name, spread in part.items():
            found[name] = found[name].joined(spread) if name in found else spread
    return found


def within_file(spreads: Spreads) -> Iterator[Problem]:
    """The problems of columns that differ within the file, counting rows above the smallest value."""
    for name, spread in spreads.items():
        if spread.smallest != spread.largest:
            yield Problem(
                DIFFERENT_VALUES,
                "must have one value in all rows of the file",
                name,
                event_id=spread.largest_row["event_id"],
                count=spread.rows - spread.smallest_rows,
                examples=(spread.smallest_row, spread.largest_row),
            )


def _differing(table: pa.Table, name: str) -> Problem | None:
    """Counts all rows of events with different values, so that their order does not matter."""
    events, values = (as_numpy(table.column(column)) for column in ("event_id", name))
    changes = np.flatnonzero((values[1:] != values[:-1]) & (events[1:] == events[:-1]))
    if not len(changes):
        return None
    changed = np.unique(events[changes])
    rows = np.searchsorted(events, changed, "right") - np.searchsorted(events, changed, "left")
    shown = np.unique([changes[:MAX_EXAMPLES], changes[:MAX_EXAMPLES] + 1])[:MAX_EXAMPLES]
    return Problem(
        DIFFERENT_VALUES,
        "must have one value in all rows of an event",
        name,
        event_id=int(changed[0]),
        count=int(rows.sum()),
        examples=tuple(table.take(shown).to_pylist()),
    )


def _spread(table: pa.Table, name: str) -> Spread:
    values = as_numpy(table.column(name))
    smallest, largest = values.min(), values.max()
    is_smallest = values == smallest
    return Spread(
        smallest=smallest.item(),
        smallest_row=_row(table, int(np.argmax(is_smallest))),
        smallest_rows=int(np.count_nonzero(is_smallest)),
        largest=largest.item(),
        largest_row=_row(table, int(np.argmax(values == largest))),
        rows=len(values),
    )


def _row(table: pa.Table, number: int) -> Mapping[str, Any]:
    row: Mapping[str, Any] = table.slice(number, 1).to_pylist()[0]
    return row
