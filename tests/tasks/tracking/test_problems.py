"""What is refused, and how it is reported."""

from __future__ import annotations

import pyarrow as pa
import pytest

from collidium_tasks.tracking.card import problems_of
from collidium_tasks.tracking.events import events_of

from .blocks import blocks, dataset, predictions, prepare, problems
from .reference import Hit, Row, TrueEvent

TRUTH = {
    4: TrueEvent([Hit(0, 10), Hit(1, 10), Hit(2, 20)]),
    5: TrueEvent([Hit(0, 10), Hit(7, 30)]),
}


def test_all_problems_are_reported_with_column_event_and_rows() -> None:
    rows = [Row(4, 0, 1), Row(4, 0, 2), Row(4, 9, 1), Row(4, -5, 1), Row(5, 0, -2), Row(5, 9, 1)]
    found = {problem.code: problem for problem in problems(TRUTH, rows)}
    assert {code: (p.column, p.event_id, p.count) for code, p in found.items()} == {
        "duplicate-row": ("hit_id", 4, 1),
        "unknown-hit": ("hit_id", 4, 2),
        "negative-id": ("hit_id", 4, 1),
        "negative-track": ("track_id", 5, 1),
    }
    assert found["duplicate-row"].examples == ({"event_id": 4, "hit_id": 0, "track_id": 2},)
    assert [row["event_id"] for row in found["unknown-hit"].examples] == [4, 5]
    assert all(problem.detail for problem in found.values())


def test_a_few_rows_stand_for_many() -> None:
    (problem,) = problems(TRUTH, [Row(4, 0, 1)] * 12)
    assert problem.code == "duplicate-row"
    assert problem.count == 11
    assert len(problem.examples) == 5


def test_ids_with_equal_low_bits_differ() -> None:
    truth = {0: TrueEvent([Hit(2**64 - 1, 10), Hit(2**53, 10)])}
    (negative,) = problems(truth, [Row(0, -1, 1)])
    assert negative.code == "negative-id"
    (unknown,) = problems(truth, [Row(0, 2**53 + 1, 1)])
    assert unknown.code == "unknown-hit"


@pytest.mark.parametrize(
    ("kind", "wrapped"),
    [(pa.uint64(), 2**64 - 1), (pa.uint32(), 2**32 - 1), (pa.uint64(), 2**32 - 1)],
)
def test_a_wrapped_minus_one_is_no_track(kind: pa.DataType, wrapped: int) -> None:
    rows = [Row(4, 0, 7), Row(4, 1, wrapped), Row(5, 0, wrapped)]
    (block,) = blocks(prepare(dataset(TRUTH)), predictions(rows, track_ids=kind), [0, 9])
    (problem,) = problems_of(events_of(block))
    assert (problem.code, problem.column, problem.count) == ("negative-track", "track_id", 2)
    assert "write -1 in a signed type" in problem.detail


@pytest.mark.parametrize(
    ("kind", "largest"), [(pa.uint8(), 255), (pa.uint16(), 2**16 - 1), (pa.int64(), 2**63 - 1)]
)
def test_other_large_track_ids_are_tracks(kind: pa.DataType, largest: int) -> None:
    rows = [Row(4, 0, largest), Row(4, 1, 0)]
    (block,) = blocks(prepare(dataset(TRUTH)), predictions(rows, track_ids=kind), [0, 9])
    assert problems_of(events_of(block)) == []
