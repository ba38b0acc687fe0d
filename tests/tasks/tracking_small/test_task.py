"""Tracking with few parameters: the efficiency of the tracking task, and the number that is reported."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.tasks.tracking.blocks import blocks, dataset, one_block, predictions
from tests.tasks.tracking.reference import Hit, Row, TrueEvent

from collidium.contracts.task import Block
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking_small import TrackingSmallTask, with_parameters

TASK = TrackingSmallTask()

#: Two particles of two hits each, in three events.
TRUTH = {event: TrueEvent([Hit(hit, 1 + hit // 2) for hit in range(4)]) for event in range(3)}
#: One of the two tracks of each event.
ROWS = [Row(event, hit, 7 if hit < 2 else -1) for event in range(3) for hit in range(4)]


def block(n_params: int, rows: list[Row] = ROWS, kind: pa.DataType | None = None) -> Block:
    submitted = predictions(rows)
    column = pa.array([n_params] * len(rows), kind or pa.int64())
    return one_block(dataset(TRUTH), submitted.append_column("n_params", column))


@pytest.mark.parametrize(
    ("n_params", "tier"),
    [
        *((1, 1), (10**4, 1), (10**4 + 1, 2), (10**5, 2), (10**5 + 1, 3)),
        *((10**6, 3), (10**6 + 1, 4), (2**63 - 1, 4)),
    ],
)
def test_tiers_end_at_powers_of_ten(n_params: int, tier: int) -> None:
    metrics = TASK.metrics(TASK.merge([TASK.score(block(n_params))]))
    assert metrics == {"trackml_weighted_efficiency": 0.5, "n_params": float(n_params), "tier": tier}


def test_the_largest_number_that_fits_into_a_file_is_one() -> None:
    metrics = TASK.metrics(TASK.score(block(2**64 - 1, kind=pa.uint64())))
    assert (metrics["n_params"], metrics["tier"]) == (2.0**64, 4)


def test_without_scored_rows_there_is_no_number() -> None:
    """Else a file with rows for the events that are held back would have no parameters on the others."""
    assert TASK.metrics(TASK.score(block(5, rows=[]))) == {"trackml_weighted_efficiency": 0}
    assert TASK.metrics(TASK.merge([])) == {"trackml_weighted_efficiency": 0}


def test_events_without_rows_change_no_number() -> None:
    rows = [row for row in ROWS if row.event_id == 1]
    tables = TASK.prepare(dataset(TRUTH))
    cut = blocks(tables, with_parameters(predictions(rows), 20_000), [0, 1, 2, 3])
    tallies = [TASK.score(part) for part in cut]
    expected = {"trackml_weighted_efficiency": 1 / 6, "n_params": 20_000, "tier": 2}
    assert TASK.metrics(TASK.merge(tallies)) == expected
    drawn = TASK.resample(tallies, [[0, 1, 2], [1, 1, 1], [0, 0, 2]])
    assert [metrics.get("n_params") for metrics in drawn] == [20_000, 20_000, None]
    assert drawn[0] == pytest.approx(expected)


def test_problems_of_tracks_are_reported_too() -> None:
    rows = [Row(0, 0, -5), Row(0, 77, 1), Row(0, 1, 1), Row(0, 1, 1)]
    assert {problem.code for problem in TASK.check(block(1, rows))} == {
        "negative-track",
        "unknown-hit",
        "duplicate-row",
    }


def test_scores_in_bins_are_those_of_tracking() -> None:
    scored = block(5)
    tracking = TrackingTask()
    assert TASK.curves(TASK.score(scored)) == tracking.curves(tracking.score(scored)) != []
