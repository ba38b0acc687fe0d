"""Predictions as nobody would write them, but somebody sends them; made by hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Block, Column
from collidium.testing.conformance.promise import Nonconforming
from collidium.testing.task_suite import scoring
from collidium.testing.task_suite.checks.metrics import check_metrics
from collidium.testing.task_suite.checks.problems import check_problem
from collidium.testing.task_suite.subject import Subject
from collidium.testing.task_suite.suite import described

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_EXAMPLES: Final = 100
_MOST_ROWS: Final = 12
#: Valid rows that hostile ones are made from.
_VALID_ROWS: Final = 200
_ROWS_SHOWN: Final = 3
_INTEGERS: Final = (pa.int64(), pa.int8(), pa.int32(), pa.uint32(), pa.uint64())
_FLOATS: Final = (pa.float64(), pa.float32(), *_INTEGERS)
_EDGES: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e-30, 3e38, -3e38)


def hostile_predictions_never_crash(subject: Subject) -> None:
    """Whatever the engine lets through is refused, or scored within bounds: nothing crashes."""
    from hypothesis import HealthCheck, Phase, given, settings

    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,  # a verdict is the same today and tomorrow
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
            # As in the suite; hypothesis then looks for the smallest table that does it.
            broken = str(error) if isinstance(error, Nonconforming) else f"it raises {described(error)}"
            shown = predictions.slice(0, _ROWS_SHOWN).to_pylist()
            kinds = ", ".join(f"{field.name} {field.type}" for field in predictions.schema)
            told = f"{broken}; predictions of {predictions.num_rows} rows: {shown} ({kinds})"
            raise Nonconforming(told) from error

    refused_or_scored()


def _refuse_or_score(subject: Subject, predictions: pa.Table) -> None:
    task, cut = subject.task, [subject.events]
    (block,) = scoring.blocks(subject.truth, predictions, cut)
    problems = task.check(block)
    for problem in problems:
        check_problem(problem, task.card, range(block.events.start, block.events.stop))
    if not problems:
        _score(subject, block)


def _score(subject: Subject, block: Block) -> None:
    tally = subject.task.merge([scoring.through_pickle(subject.task.score(block))])
    problems = subject.task.check_whole(tally)
    for problem in problems:
        check_problem(problem, subject.task.card, range(block.events.start, block.events.stop))
    if not problems:
        check_metrics(subject.task.card, subject.task.metrics(tally), "hostile predictions")


def _tables(subject: Subject) -> SearchStrategy[pa.Table]:
    """Rows of a valid answer, repeated, left out and overwritten, in any type that the engine takes."""
    from hypothesis import strategies as st

    card = subject.task.card
    valid = subject.main.slice(0, _VALID_ROWS).to_pylist()

    @st.composite
    def tables(draw: st.DrawFn) -> pa.Table:
        kinds = {column.name: draw(st.sampled_from(_kinds(column))) for column in card.columns}
        rows = []
        for _ in range(draw(st.integers(0, _MOST_ROWS))):
            row = dict(draw(st.sampled_from(valid))) if valid else {}
            for column in card.columns:
                if column.name not in row or draw(st.booleans()):
                    row[column.name] = draw(_values(column, kinds[column.name], subject.events))
            rows.append(row)
        _unite(rows, card.columns)
        return _typed(rows, card.columns, kinds).sort_by("event_id")

    return tables()


def _unite(rows: list[dict[str, Any]], columns: Sequence[Column]) -> None:
    """Give one value to the rows in which a column has one, as the engine sees to."""
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
    least, most = int(lowest), int(highest)
    return st.sampled_from([least, most, *map(int, edges)]) | st.integers(least, most)


def _limits(column: Column, kind: pa.DataType) -> tuple[float, float]:
    """The lowest and the highest value of that type that the column takes; integers of integer types."""
    lowest, highest = column.bounds
    if pa.types.is_floating(kind):
        number = np.float64 if kind == pa.float64() else np.float32
        widest = float(np.finfo(number).max)
        least, most = number(max(lowest, -widest)), number(min(highest, widest))
        # Rounding may have led out of bounds.
        least = np.nextafter(least, number(inf)) if least < lowest else least
        most = np.nextafter(most, number(-inf)) if most > highest else most
        return float(least), float(most)
    smallest = -(1 << (kind.bit_width - 1)) if pa.types.is_signed_integer(kind) else 0
    largest = smallest + (1 << kind.bit_width) - 1
    return ceil(max(lowest, smallest)), floor(min(highest, largest))


def _typed(
    rows: list[dict[str, Any]], columns: Sequence[Column], kinds: Mapping[str, pa.DataType]
) -> pa.Table:
    """The rows with these types; a valid value that does not fit is moved into the limits."""
    made = {}
    for column in columns:
        kind = kinds[column.name]
        lowest, highest = _limits(column, kind)
        whole = int if pa.types.is_integer(kind) else float
        made[column.name] = pa.array(
            [whole(min(max(row[column.name], lowest), highest)) for row in rows], kind
        )
    return pa.table(made)
