"""Checks that a column has one value within each event, or within the whole file, wherever its rows lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Column, Problem
from collidium.scoring.content import as_numpy
from collidium.scoring.problems import MAX_EXAMPLES

CODE: Final = "different-values"


@dataclass(frozen=True, slots=True)
class Spread:
    """The smallest and the largest value that a column has in some rows, each with a row that has it."""

    smallest: Any
    smallest_row: Mapping[str, Any]
    #: How many rows have the smallest value.
    smallest_rows: int
    largest: Any
    largest_row: Mapping[str, Any]
    rows: int

    def joined(self, other: Spread) -> Spread:
        """Of the rows of both; ``other`` has the later events."""
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


#: By column, of those that have one value in the whole file.
Spreads = dict[str, Spread]


def within_events(table: pa.Table, columns: Sequence[Column]) -> list[Problem]:
    """The problems of whole events, sorted by event, in which a column differs that may not."""
    problems = []
    for column in columns:
        if column.one_per == "event" and table.num_rows:
            differing = _differing(table, column.name)
            problems += [] if differing is None else [differing]
    return problems


def spreads_of(table: pa.Table, columns: Sequence[Column]) -> Spreads:
    """How far the columns spread that have one value in the whole file."""
    wanted = [column.name for column in columns if column.one_per == "file"]
    return {name: _spread(table, name) for name in wanted} if table.num_rows else {}


def joined(spreads: Iterable[Spreads]) -> Spreads:
    """The spreads of all rows together, from those of some, in order of events."""
    found: Spreads = {}
    for part in spreads:
        for name, spread in part.items():
            found[name] = found[name].joined(spread) if name in found else spread
    return found


def within_file(spreads: Spreads) -> Iterator[Problem]:
    """The problems of columns that differ within the file; counted are the rows above the smallest value."""
    for name, spread in spreads.items():
        if spread.smallest != spread.largest:
            yield Problem(
                CODE,
                "must have one value in all rows of the file",
                name,
                event_id=spread.largest_row["event_id"],
                count=spread.rows - spread.smallest_rows,
                examples=(spread.smallest_row, spread.largest_row),
            )


def _differing(table: pa.Table, name: str) -> Problem | None:
    """Counted are all rows of the events that are not of one mind, so their order does not matter."""
    events, values = (as_numpy(table.column(column)) for column in ("event_id", name))
    changes = np.flatnonzero((values[1:] != values[:-1]) & (events[1:] == events[:-1]))
    if not len(changes):
        return None
    changed = np.unique(events[changes])
    rows = np.searchsorted(events, changed, "right") - np.searchsorted(events, changed, "left")
    shown = np.unique([changes[:MAX_EXAMPLES], changes[:MAX_EXAMPLES] + 1])[:MAX_EXAMPLES]
    return Problem(
        CODE,
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
