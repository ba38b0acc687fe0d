"""Checks of invalid rows: their problems, and generated hostile predictions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Block, Card, Column, EventRange, Problem
from collidium.testing.conformance.promise import Nonconforming, promise
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.checks.metrics import check_metrics
from collidium.testing.task_suite.suite import Subject, described

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Row = dict[str, Any]
#: The code and the column of a problem, which identify it.
Key = tuple[str, str | None]

_CODE: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
#: Too small for an id or a probability, and too large for either.
_STRANGE: Final = {"integer": (-7, 2**62), "float": (-1e9, 1e9)}
_EXAMPLES: Final = 100
_MAX_ROWS: Final = 12
#: Number of valid rows from which hostile ones are generated.
_VALID_ROWS: Final = 200
_ROWS_SHOWN: Final = 3
_INTEGERS: Final = (pa.int64(), pa.int8(), pa.int32(), pa.uint32(), pa.uint64())
_FLOATS: Final = (pa.float64(), pa.float32(), *_INTEGERS)
_EDGES: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e-30, 3e38, -3e38)


@dataclass(frozen=True, slots=True)
class _Fault:
    """A change that makes one row invalid; returns the rows that replace it."""

    what: str
    spoil: Callable[[Row], list[Row]]


def problems_are_reported_together(subject: Subject) -> None:
    """All problems of a file are reported at once."""
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


def check_problem(problem: Problem, card: Card, events: EventRange) -> None:
    """Raise Nonconforming unless a problem is valid and can be shown to the submitter."""
    promise(isinstance(problem, Problem), f"check must give Problems, not {problem!r}")
    promise(
        isinstance(problem.code, str) and _CODE.fullmatch(problem.code) is not None,
        f"a problem's code is a short stable word like duplicate-row, not {problem.code!r}",
    )
    place = f"the problem {problem.code}"
    promise(bool(problem.detail.strip()), f"{place} needs a sentence that says what is wrong")
    promise(problem.column in (None, *card.column_names), f"{place} names no column of the card")
    promise(problem.count >= 1, f"{place} must have a row, not {problem.count}")
    inside = problem.event_id is None or problem.event_id in events
    promise(inside, f"{place} names event {problem.event_id}, which is not in the block")
    for example in problem.examples:
        strange = sorted(set(example) - set(card.column_names))
        promise(not strange, f"{place} shows {', '.join(strange)}, which was not submitted")


# -- rows with faults -----------------------------------------------------------------------------------

Spoilt = Callable[[_Fault | None, _Fault | None], pa.Table]


def _pairs(subject: Subject) -> Iterable[tuple[_Fault, _Fault, Spoilt]]:
    """Yield pairs of faults, with a function that puts them into the first and last row of predictions."""
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
    """The number of rows with each problem."""
    counts: Counter[Key] = Counter()
    for block in scoring.blocks(subject.truth, predictions, cut):
        for problem in subject.task.check(block):
            check_problem(problem, subject.task.card, block.events)
            counts[problem.code, problem.column] += problem.count
    return counts


def hostile_predictions_never_crash(subject: Subject) -> None:
    """Predictions that the engine accepts are rejected or scored within bounds, and never crash the task."""
    from hypothesis import HealthCheck, Phase, given, settings

    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,  # reproducible
        database=None,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(_tables(subject))
    def refused_or_scored(predictions: pa.Table) -> None:
        try:
            _refuse_or_score(subject, predictions)
        except Exception as error:
            # As in the suite. hypothesis then looks for the smallest table that fails.
            broken = str(error) if isinstance(error, Nonconforming) else f"it raises {described(error)}"
            shown = predictions.slice(0, _ROWS_SHOWN).to_pylist()
            kinds = ", ".join(f"{field.name} {field.type}" for field in predictions.schema)
            message = f"{broken}; predictions of {predictions.num_rows} rows: {shown} ({kinds})"
            raise Nonconforming(message) from error

    refused_or_scored()


def _refuse_or_score(subject: Subject, predictions: pa.Table) -> None:
    task, cut = subject.task, [subject.events]
    (block,) = scoring.blocks(subject.truth, predictions, cut)
    problems = task.check(block)
    for problem in problems:
        check_problem(problem, task.card, block.events)
    if not problems:
        _score(subject, block)


def _score(subject: Subject, block: Block) -> None:
    tally = subject.task.merge([scoring.through_pickle(subject.task.score(block))])
    problems = subject.task.check_whole(tally)
    for problem in problems:
        check_problem(problem, subject.task.card, block.events)
    if not problems:
        check_metrics(subject.task.card, subject.task.metrics(tally), "hostile predictions")


def _tables(subject: Subject) -> SearchStrategy[pa.Table]:
    """Generate tables from rows of valid predictions, with values and types that the engine accepts."""
    from hypothesis import strategies as st

    card = subject.task.card
    valid = subject.main.slice(0, _VALID_ROWS).to_pylist()

    @st.composite
    def tables(draw: st.DrawFn) -> pa.Table:
        kinds = {column.name: draw(st.sampled_from(_kinds(column))) for column in card.columns}
        rows = []
        for _ in range(draw(st.integers(0, _MAX_ROWS))):
            row = dict(draw(st.sampled_from(valid))) if valid else {}
            for column in card.columns:
                if column.name not in row or draw(st.booleans()):
                    row[column.name] = draw(_values(column, kinds[column.name], subject.events))
            rows.append(row)
        _unite(rows, card.columns)
        return _typed(rows, card.columns, kinds).sort_by("event_id")

    return tables()


def _unite(rows: list[dict[str, Any]], columns: Sequence[Column]) -> None:
    """Make the values of ``one_per`` columns equal, as the engine requires."""
    for column in columns:
        if column.one_per is not None:
            values: dict[int, Any] = {}
            for row in rows:
                part = row["event_id"] if column.one_per == "event" else 0
                row[column.name] = values.setdefault(part, row[column.name])


def _kinds(column: Column) -> tuple[pa.DataType, ...]:
    if column.name == "event_id":
        return (pa.int64(), pa.uint32())
    kinds = _INTEGERS if column.kind == "integer" else _FLOATS
    limits = {kind: _limits(column, kind) for kind in kinds}
    return tuple(kind for kind, (lowest, highest) in limits.items() if lowest <= highest)


def _values(column: Column, kind: pa.DataType, events: list[int]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if column.name == "event_id":
        return st.sampled_from(events)
    lowest, highest = _limits(column, kind)
    edges = sorted({min(max(edge, lowest), highest) for edge in _EDGES})
    if pa.types.is_floating(kind):
        width: Literal[32, 64] = 64 if kind == pa.float64() else 32
        numbers = st.floats(lowest, highest, allow_nan=False, allow_infinity=False, width=width)
        return st.sampled_from(edges) | numbers
    minimum, maximum = int(lowest), int(highest)
    return st.sampled_from([minimum, maximum, *map(int, edges)]) | st.integers(minimum, maximum)


def _limits(column: Column, kind: pa.DataType) -> tuple[float, float]:
    """The lowest and the highest valid value of a column with this type."""
    lowest, highest = column.bounds
    if pa.types.is_floating(kind):
        number = np.float64 if kind == pa.float64() else np.float32
        widest = float(np.finfo(number).max)
        minimum, maximum = number(max(lowest, -widest)), number(min(highest, widest))
        # Rounding to float32 may exceed the bounds.
        minimum = np.nextafter(minimum, number(inf)) if minimum < lowest else minimum
        maximum = np.nextafter(maximum, number(-inf)) if maximum > highest else maximum
        return float(minimum), float(maximum)
    smallest = -(1 << (kind.bit_width - 1)) if pa.types.is_signed_integer(kind) else 0
    largest = smallest + (1 << kind.bit_width) - 1
    return ceil(max(lowest, smallest)), floor(min(highest, largest))


def _typed(
    rows: list[dict[str, Any]], columns: Sequence[Column], kinds: Mapping[str, pa.DataType]
) -> pa.Table:
    """Convert rows to these types; values are clipped to the limits of the type."""
    made = {}
    for column in columns:
        kind = kinds[column.name]
        lowest, highest = _limits(column, kind)
        whole = int if pa.types.is_integer(kind) else float
        made[column.name] = pa.array(
            [whole(min(max(row[column.name], lowest), highest)) for row in rows], kind
        )
    return pa.table(made)
