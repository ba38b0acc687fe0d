"""Checks of columns by their card: bounds, and columns with one value per event or file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any, Literal

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import toy_task
from hypothesis import given
from toy_task import SIZES, Score, Strict

from collidium.contracts.task import Column, EventRange, Problem
from collidium.errors import InvalidInput
from collidium.scoring import content

EVENT = Column(name="event_id", kind="integer", description="Event.")


def bounded(lowest: float, highest: float) -> Column:
    return Column(name="value", kind="float", description="Value.", bounds=(lowest, highest))


def problems_of(column: Column, values: Sequence[Any], kind: pa.DataType) -> list[Problem]:
    table = pa.table({"event_id": pa.array([7] * len(values)), "value": pa.array(values, kind)})
    problems, kept = content.check(table, (EVENT, column), EventRange(7, 8))
    lowest, highest = column.bounds
    assert all(value is not None and lowest <= value <= highest for value in kept["value"].to_pylist())
    lost = sum(problem.count for problem in problems if problem.code != "out-of-bounds")
    assert len(values) - lost == kept.num_rows, "what is out of bounds is looked at further"
    return problems


# -- bounds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "kind", "values", "outside"),
    [
        ((0, 1), pa.float64(), [0.0, -0.0, 1.0, 0.5], 0),
        ((0, 1), pa.float64(), [-5e-324, np.nextafter(1, 2), 0.5], 2),
        ((0, 0.1), pa.float32(), [np.float32(0.1), 0.05], 1),  # above 0.1, by 1.5e-9
        ((0, 1), pa.int8(), [0, 1, 2, -1, -128], 3),
        ((0.5, 1.5), pa.int64(), [0, 1, 2], 2),
        ((1, inf), pa.int64(), [1, 2**63 - 1, 0, -(2**63)], 2),
        ((1, inf), pa.uint64(), [1, 2**64 - 1, 0], 1),
        ((0, 2**63 - 2), pa.int64(), [2**63 - 2, 2**63 - 1], 1),
        ((0, 2**53), pa.uint64(), [2**53, 2**53 + 1], 1),
        ((-inf, 5), pa.uint8(), [5, 6, 255], 2),
        ((-(10**30), 10**30), pa.int64(), [2**63 - 1, -(2**63)], 0),
    ],
)
def test_values_out_of_bounds_are_counted_exactly(
    bounds: tuple[float, float], kind: pa.DataType, values: list[Any], outside: int
) -> None:
    problems = problems_of(bounded(*bounds), values, kind)
    assert [problem.code for problem in problems] == ["out-of-bounds"] * bool(outside)
    assert sum(problem.count for problem in problems) == outside


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((1, inf), "1 or more"),
        ((-inf, 0.5), "0.5 or less"),
        ((0, 1e6), "within 0 and 1000000"),
        ((2**60, 2**63 - 1), "within 1152921504606846976 and 9223372036854775807"),
    ],
)
def test_bounds_are_part_of_the_message(bounds: tuple[float, float], words: str) -> None:
    (problem,) = problems_of(bounded(*bounds), [-7, 2 * 10**6], pa.int64())
    assert problem.detail == f"has values that are not {words}"


def test_a_non_finite_value_is_one_problem() -> None:
    problems = problems_of(bounded(1, 2), [None, nan, inf, -inf, 0.5, 1.5], pa.float64())
    found = {problem.code: problem.count for problem in problems}
    assert found == {"null-value": 1, "non-finite": 3, "out-of-bounds": 1}


def test_a_type_without_a_value_within_bounds_leaves_no_row() -> None:
    column = bounded(1000, 2000)
    table = pa.table({"event_id": [7, 7], "value": pa.array([1, 127], pa.int8())})
    (problem,), kept = content.check(table, (EVENT, column), EventRange(7, 8))
    assert (problem.code, problem.count, kept.num_rows) == ("out-of-bounds", 2, 0)


# -- one value ------------------------------------------------------------------------------------------

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=12).map(sorted)


def problem_of(kind: Literal["event", "file"], table: pa.Table, cuts: Sequence[int]) -> dict[str, Any] | None:
    """The problem of a table that is read in blocks of whole events."""
    columns = (Column(name="value", kind="integer", description="Value.", one_per=kind),)
    events = np.asarray(table["event_id"])
    edges = [0, *np.searchsorted(events, cuts), len(events)]
    parts = [table.slice(first, stop - first) for first, stop in pairwise(edges)]
    problems = [problem for part in parts for problem in content.within_events(part, columns)]
    spreads = content.joined(content.spreads_of(part, columns) for part in parts)
    problems += content.within_file(spreads)
    if not problems:
        return None
    return {"count": sum(problem.count for problem in problems), "first": problems[0].examples[0]}


@given(rows, st.sets(st.integers(0, 5)).map(sorted))
def test_a_constant_column_is_judged_the_same_in_any_batches(
    pairs: list[tuple[int, int]], cuts: list[int]
) -> None:
    events, values = zip(*pairs, strict=True)
    table = pa.table({"event_id": events, "value": values})
    for kind in ("event", "file"):
        assert problem_of(kind, table, cuts) == problem_of(kind, table, [])
    by_event = {event: [value for other, value in pairs if other == event] for event in events}
    split = [own for own in by_event.values() if len(set(own)) > 1]
    whole = problem_of("event", table, [])
    assert (whole["count"] if whole else 0) == sum(map(len, split))
    whole = problem_of("file", table, [])
    assert (whole["count"] if whole else 0) == len(values) - values.count(min(values))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("layout", ["sorted", "shuffled"])
async def test_all_problems_are_reported_whatever_the_jobs(score: Score, tmp_path: Path, layout: str) -> None:
    table = toy_task.items()
    seconds = np.asarray(table["event_id"]) / 4
    sizes = np.full(table.num_rows, 1000)
    values = np.asarray(table["value"]).copy()
    assert await problem_of_the_engine(score, tmp_path, strict(table, values, seconds, sizes)) == {}
    seconds[-1], seconds[0] = 9.25, -1
    sizes[-1], sizes[30] = 2000, 0
    values[40:43] = 1000.5
    wrong = strict(table, values, seconds, sizes)
    if layout == "shuffled":
        wrong = wrong.take(np.random.default_rng(5).permutation(table.num_rows))
    assert await problem_of_the_engine(score, tmp_path, wrong) == {
        ("out-of-bounds", "value"): 3,
        ("out-of-bounds", "seconds"): 1,
        ("out-of-bounds", "size"): 1,
        ("different-values", "seconds"): SIZES[0] + SIZES[-1],
        ("different-values", "size"): table.num_rows - 1,
    }


def strict(table: pa.Table, values: Any, seconds: Any, sizes: Any) -> pa.Table:
    columns = {"value": pa.array(values), "seconds": pa.array(seconds), "size": pa.array(sizes)}
    return pa.table({"event_id": table["event_id"], "item_id": table["item_id"], **columns})


async def problem_of_the_engine(score: Score, directory: Path, table: pa.Table) -> dict[tuple[str, str], int]:
    """The number of rows with each problem, the same for any layout and jobs."""
    path = directory / "p.parquet"
    found = []
    for group_rows, statistics, job_rows in ((16, True, 1), (1000, True, None), (9, False, 45)):
        pq.write_table(table, path, row_group_size=group_rows, write_statistics=statistics)
        try:
            await score(path, Strict(), job_rows=job_rows)
            found.append({})
        except InvalidInput as error:
            found.append(
                {(one["code"], one["column"]): one["count"] for one in error.errors if one["examples"]}
            )
    assert found == found[:1] * 3
    return found[0]
