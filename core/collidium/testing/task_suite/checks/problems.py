"""Checks of problems: reported completely, and without secrets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final

import pyarrow as pa

from collidium.contracts.task import Card, Column, Problem
from collidium.testing.conformance.promise import promise
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.subject import Subject

Row = dict[str, Any]
#: The code and the column of a problem, which identify it.
Key = tuple[str, str | None]

_CODE: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
#: Too small for an id or a probability, and too large for either.
_STRANGE: Final = {"integer": (-7, 2**62), "float": (-1e9, 1e9)}


@dataclass(frozen=True, slots=True)
class _Fault:
    """A change that makes one row invalid; returns the rows that replace it."""

    what: str
    spoil: Callable[[Row], list[Row]]


def problems_are_reported_together(subject: Subject) -> None:
    """All problems of a file are reported at once, so that a file is fixed once."""
    for first, second, predictions in _pairs(subject):
        alone = _keys(subject, predictions(first, None)) | _keys(subject, predictions(None, second))
        together = _keys(subject, predictions(first, second))
        hidden = sorted(f"{code} ({column})" for code, column in alone - together)
        promise(
            not hidden,
            f"check must report all problems at once; where {first.what} and, elsewhere, {second.what}, "
            f"it omits {', '.join(hidden)}",
        )


def problems_are_independent_of_blocks(subject: Subject) -> None:
    """Problems and their numbers of rows do not depend on how events are cut into blocks."""
    apart = [[event] for event in subject.events]
    for first, second, predictions in _pairs(subject):
        spoilt = predictions(first, second)
        together, one_by_one = (_counts(subject, spoilt, cut) for cut in ([subject.events], apart))
        promise(
            together == one_by_one,
            f"problems must not depend on how events are cut into blocks; where {first.what} and, elsewhere, "
            f"{second.what}, they are {dict(together)}, and {dict(one_by_one)} event by event",
        )


def check_problem(problem: Problem, card: Card, events: Sequence[int]) -> None:
    """Raise Nonconforming unless the problem can be shown to the submitter."""
    promise(isinstance(problem, Problem), f"check must give Problems, not {problem!r}")
    promise(
        isinstance(problem.code, str) and _CODE.fullmatch(problem.code) is not None,
        f"a problem's code is a short stable word like duplicate-row, not {problem.code!r}",
    )
    place = f"the problem {problem.code}"
    promise(bool(problem.detail.strip()), f"{place} needs a sentence that says what is wrong")
    promise(problem.column in (None, *card.column_names), f"{place} names no column of the card")
    promise(problem.count >= 1, f"{place} must have a row, not {problem.count}")
    inside = problem.event_id is None or events[0] <= problem.event_id <= events[-1]
    promise(inside, f"{place} names event {problem.event_id}, which is not in the block")
    for example in problem.examples:
        strange = sorted(set(example) - set(card.column_names))
        promise(not strange, f"{place} shows {', '.join(strange)}, which was not submitted")


# -- spoiling ------------------------------------------------------------------------------------------

Spoilt = Callable[[_Fault | None, _Fault | None], pa.Table]


def _pairs(subject: Subject) -> Iterable[tuple[_Fault, _Fault, Spoilt]]:
    """Two faults, and how to put them, or one, into the first and the last row of a valid answer."""
    card = subject.task.card
    rows: list[Row] = subject.main.to_pylist()
    if len(rows) < 2:
        return

    def predictions(first: _Fault | None, second: _Fault | None) -> pa.Table:
        begin = first.spoil(rows[0]) if first else [rows[0]]
        end = second.spoil(rows[-1]) if second else [rows[-1]]
        return _table(card, [*begin, *rows[1:-1], *end])

    for first, second in permutations(_faults(card), 2):
        yield first, second, predictions


def _faults(card: Card) -> list[_Fault]:
    faults = [_Fault("a row stands twice", lambda row: [row, row])]
    for column in card.columns:
        if column.name != "event_id" and column.one_per is None:  # checked by the engine
            lowest, highest = column.bounds
            faults += [_set(column, min(max(value, lowest), highest)) for value in _STRANGE[column.kind]]
    return faults


def _set(column: Column, value: float) -> _Fault:
    return _Fault(f"{column.name} is {value}", lambda row: [{**row, column.name: value}])


def _table(card: Card, rows: list[Row]) -> pa.Table:
    kinds: dict[str, pa.DataType] = {"integer": pa.int64(), "float": pa.float64()}
    return pa.Table.from_pylist(rows, pa.schema([(c.name, kinds[c.kind]) for c in card.columns]))


def _keys(subject: Subject, predictions: pa.Table) -> set[Key]:
    return set(_counts(subject, predictions, [subject.events]))


def _counts(subject: Subject, predictions: pa.Table, cut: scoring.Cut) -> Counter[Key]:
    """How many rows have each problem."""
    counts: Counter[Key] = Counter()
    for block in scoring.blocks(subject.truth, predictions, cut):
        for problem in subject.task.check(block):
            check_problem(problem, subject.task.card, range(block.events.start, block.events.stop))
            counts[problem.code, problem.column] += problem.count
    return counts
