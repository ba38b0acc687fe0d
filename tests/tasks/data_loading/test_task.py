"""A reading of the slice is ranked by its times; one of anything else is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.core.datasets.events import tables_of

from collidium.contracts.digest import event_digests, together
from collidium.contracts.task import Block, EventRange, Problem, UnusableTruth
from collidium_tasks.data_loading import DataLoadingTask

TASK = DataLoadingTask()
HITS = tables_of(range(8), hits=30)["tracker_hits"]
TRUTH = TASK.prepare({"tracker_hits": HITS})
ROW = {
    "event_id": 0,
    "events": 8,
    "digest": together(event_digests(HITS)),
    "seconds_local": 0.5,
    "seconds_streaming": 4.0,
}


def tallies(rows: list[dict[str, Any]], edges: list[int]) -> list[Any]:
    """Tallies of blocks of the eight events that begin and end at the edges."""
    made = []
    for start, stop in pairwise(edges):
        predictions = pa.Table.from_pylist([row for row in rows if start <= row["event_id"] < stop])
        truth = {
            name: table.filter(pa.array((ids >= start) & (ids < stop)))
            for name, table in TRUTH.items()
            for ids in [np.asarray(table.column("event_id"))]
        }
        made.append(TASK.score(Block(EventRange(start, stop), predictions, truth)))
    return made


def problems(row: dict[str, Any]) -> list[Problem]:
    return TASK.check_whole(TASK.merge(tallies([row], [0, 8])))


def test_truth_is_a_digest_for_each_event_and_one_slice() -> None:
    assert TRUTH["slices"].to_pydict() == {"event_id": [0]}
    assert TRUTH["events"].column("event_id").to_pylist() == [*range(8)]
    assert TRUTH["events"].column("digest").to_pylist() == event_digests(HITS).tolist()


def test_a_dataset_without_numbers_is_no_truth() -> None:
    texts = pa.array([["a"]] * 8, pa.list_(pa.string()))
    with pytest.raises(UnusableTruth, match="table tracker_hits: column x holds neither numbers nor lists"):
        TASK.prepare({"tracker_hits": HITS.set_column(1, "x", texts)})


def test_rates_by_hand() -> None:
    tally = TASK.merge(tallies([ROW], [0, 8]))
    assert TASK.check_whole(tally) == []
    assert TASK.metrics(tally) == {"events_per_second_local": 16.0, "events_per_second_streaming": 2.0}


def test_events_without_the_row_have_no_rates() -> None:
    """As those of a part that is drawn, or held back: so no standard error is made up."""
    (_, rest) = tallies([ROW], [0, 3, 8])
    assert TASK.check_whole(TASK.merge([rest])) == []
    assert TASK.metrics(TASK.merge([rest])) == {}


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"digest": ROW["digest"] ^ 1}, ["wrong-digest"]),
        ({"digest": 0}, ["wrong-digest"]),
        ({"digest": together(event_digests(HITS.slice(0, 7)))}, ["wrong-digest"]),
        ({"digest": together(event_digests(HITS.drop_columns(["time"])))}, ["wrong-digest"]),
        ({"events": 7}, ["wrong-events"]),
        ({"events": 9_000_000}, ["wrong-events"]),
        (
            {"events": 7, "digest": together(event_digests(HITS.slice(0, 7)))},
            ["wrong-events", "wrong-digest"],
        ),
    ],
)
def test_what_was_not_read_is_refused(changes: dict[str, Any], codes: list[str]) -> None:
    found = problems(ROW | changes)
    assert [problem.code for problem in found] == codes
    shown = [example for problem in found for example in problem.examples]
    assert shown == [{problem.column: (ROW | changes)[str(problem.column)]} for problem in found]


def test_problems_do_not_reveal_the_digest() -> None:
    """Any participant may compute it, but has then read the events."""
    assert all(str(ROW["digest"]) not in repr(problem) for problem in problems(ROW | {"digest": 1}))


def test_rows_beyond_the_one_are_refused() -> None:
    rows = [ROW, ROW, ROW | {"event_id": 5}, ROW | {"event_id": 6}]
    found = TASK.check(Block(EventRange(0, 8), pa.Table.from_pylist(rows), TRUTH))
    assert [(problem.code, problem.count) for problem in found] == [
        ("unknown-slice", 2),
        ("duplicate-row", 1),
    ]
