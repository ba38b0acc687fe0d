"""Tracking at speed: times are added exactly, and neither bad tracks nor events left out are fast."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from random import Random

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from tests.tasks.tracking.blocks import blocks, dataset, predictions
from tests.tasks.tracking.reference import Hit, Row, TrueEvent

from collidium.contracts.task import Block
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking.baselines import naive
from collidium_tasks.tracking_latency import Timed, TrackingLatencyTask

TASK = TrackingLatencyTask()
EVENTS = 4

#: Two particles of two hits each, in four events.
TRUTH = {event: TrueEvent([Hit(hit, 1 + hit // 2) for hit in range(4)]) for event in range(EVENTS)}


def rows_of(event: int, tracks: int = 2) -> list[Row]:
    """An event of which so many tracks are found."""
    return [Row(event, hit, hit // 2 if hit // 2 < tracks else -1) for hit in range(4)]


def cut(
    seconds: Mapping[int, float],
    tracks: int = 2,
    cuts: tuple[int, ...] = (0, EVENTS),
    kind: pa.DataType | None = None,
) -> list[Block]:
    """Blocks of a submission that has rows of these events alone."""
    rows = [row for event in seconds for row in rows_of(event, tracks)]
    submitted = predictions(rows)
    times = pa.array([seconds[event] for event in submitted["event_id"].to_pylist()], kind or pa.float64())
    tables = TASK.prepare(dataset(TRUTH))
    return blocks(tables, submitted.append_column("seconds", times), cuts)


def metrics(seconds: Mapping[int, float], tracks: int = 2) -> dict[str, float]:
    (block,) = cut(seconds, tracks)
    assert TASK.check(block) == []
    return TASK.metrics(TASK.merge([TASK.score(block)]))


def test_speed_is_events_over_the_time_of_all() -> None:
    assert metrics({0: 0.25, 1: 0.5, 2: 1.0, 3: 0.25}) == {
        "events_per_second": 2.0,
        "wallclock_s": 2.0,
        "trackml_weighted_efficiency": 1.0,
    }


def test_half_of_the_tracks_is_enough_and_less_is_not_fast() -> None:
    times = dict.fromkeys(range(EVENTS), 0.5)
    assert metrics(times, tracks=1)["events_per_second"] == 2.0
    assert metrics(times, tracks=0) == {"wallclock_s": 2.0, "trackml_weighted_efficiency": 0.0}


def test_omitting_slow_events_gives_no_speed() -> None:
    honest = metrics({0: 0.1, 1: 0.1, 2: 0.1, 3: 60.0})
    assert honest["events_per_second"] == pytest.approx(4 / 60.3)
    assert metrics({0: 0.1, 1: 0.1, 2: 0.1}) == {"trackml_weighted_efficiency": 0.75}
    (block,) = cut({0: 0.1, 1: 0.1, 2: 0.1})
    warnings = TASK.warnings(TASK.score(block))
    assert warnings[0] == "1 events have no row: the total time is unknown"


def test_the_shortest_and_the_longest_times_have_finite_speeds() -> None:
    (seconds,) = (column for column in TASK.card.columns if column.name == "seconds")
    least, most = seconds.bounds
    assert metrics(dict.fromkeys(range(EVENTS), least))["events_per_second"] == 1e9
    assert metrics(dict.fromkeys(range(EVENTS), most))["events_per_second"] == pytest.approx(1 / most)


@given(
    st.lists(st.floats(1e-9, 86_400), min_size=EVENTS, max_size=EVENTS),
    st.sets(st.integers(1, EVENTS - 1)),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_neither_blocks_nor_their_order_change_the_last_bit(
    times: list[float], edges: set[int], random: Random, narrow: bool
) -> None:
    kind = pa.float32() if narrow else pa.float64()
    seconds = dict(enumerate(np.array(times, np.float32 if narrow else np.float64).tolist()))
    (whole,) = cut(seconds, kind=kind)
    tallies = [TASK.score(block) for block in cut(seconds, cuts=(0, *sorted(edges), EVENTS), kind=kind)]
    random.shuffle(tallies)
    assert TASK.metrics(TASK.merge(tallies)) == TASK.metrics(TASK.score(whole))
    assert TASK.metrics(TASK.merge([TASK.merge(tallies[:1]), TASK.merge(tallies[1:])])) == TASK.metrics(
        TASK.score(whole)
    )


def test_resampled_events_have_their_own_times() -> None:
    seconds = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    tallies = [TASK.score(block) for block in cut(seconds, cuts=(0, 1, 2, 3, 4))]
    drawn = TASK.resample(tallies, [[0, 1, 2, 3], [0, 0, 0, 3]])
    assert [metrics["events_per_second"] for metrics in drawn] == [4 / 10, 4 / 7]
    assert [metrics["wallclock_s"] for metrics in drawn] == [10, 7]
    incomplete = [TASK.score(block) for block in cut({0: 1.0, 1: 1.0}, cuts=(0, 1, 2, 3, 4))]
    drawn = TASK.resample(incomplete, [[0, 1, 0, 1], [0, 1, 2, 3]])
    assert [set(metrics) for metrics in drawn] == [
        {"events_per_second", "wallclock_s", "trackml_weighted_efficiency"},
        {"trackml_weighted_efficiency"},
    ]


def test_a_baseline_times_each_event_and_nothing_else() -> None:
    ticks = count()
    hits = pa.table(
        {"event_id": pa.array([3, 4, 5], pa.uint32())} | {name: [[1.0], [2.0, 3.0], []] for name in "xyz"}
    )
    timed = Timed(naive, lambda: 2.0 ** next(ticks))({"tracker_hits": hits})
    assert timed.drop_columns(["seconds"]).equals(naive({"tracker_hits": hits}))
    assert timed["seconds"].to_pylist() == [2 - 1, 8 - 4, 8 - 4]
    nothing = Timed(naive)({"tracker_hits": hits.slice(0, 0)})
    assert (nothing.num_rows, nothing.column_names) == (0, list(TASK.card.column_names))


def test_times_below_the_clock_resolution_are_the_minimum() -> None:
    hits = pa.table({"event_id": pa.array([3], pa.uint32())} | {name: [[1.0]] for name in "xyz"})
    timed = Timed(naive, lambda: 5.0)({"tracker_hits": hits})
    assert timed["seconds"].to_pylist() == [1e-9]


def test_scores_in_bins_are_those_of_tracking() -> None:
    (block,) = cut(dict.fromkeys(range(EVENTS), 0.5))
    tracking = TrackingTask()
    assert TASK.curves(TASK.score(block)) == tracking.curves(tracking.score(block)) != []
