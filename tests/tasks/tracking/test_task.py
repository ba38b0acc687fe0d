"""The task as a plugin, its warnings, and its baselines on real events."""

from __future__ import annotations

import sys
from importlib.resources import as_file, files

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.contracts.tables import flatten
from collidium.contracts.task import Block, EventRange, Reconstruction
from collidium_tasks.tracking.baselines import EventHits, ckf, events_of, helix, naive

from .blocks import TASK, dataset, one_block, predictions
from .reference import Hit, Row, TrueEvent


def real(name: str, start: int = 0, stop: int = 5) -> pa.Table:
    """A table of the five real events that come with the package."""
    with as_file(files("collidium.demo") / "data" / "odd-ttbar-pu0" / f"{name}.parquet") as path:
        return pq.read_table(path).slice(start, stop - start)


def real_metrics(submitted: pa.Table, start: int, stop: int) -> dict[str, float]:
    tables = {name: real(name, start, stop) for name in TASK.card.truth_sources}
    block = Block(EventRange(start, stop), submitted, TASK.prepare(tables))
    assert TASK.check(block) == []
    return TASK.metrics(TASK.score(block))


def positions(start: int, stop: int, *columns: str) -> dict[str, pa.Table]:
    """The inputs of a reconstruction, without truth."""
    return {"tracker_hits": real("tracker_hits", start, stop).select(["event_id", "x", "y", "z", *columns])}


# -- the plugin -----------------------------------------------------------------------------------------


# -- warnings -------------------------------------------------------------------------------------------

TWO_EVENTS = {event: TrueEvent([Hit(hit, 1 + hit // 2) for hit in range(200)]) for event in (90_000, 90_003)}


def warnings(first_id: int, step: int) -> list[str]:
    """The warnings when tracks of event 90000 are numbered from 0, those of 90003 from ``first_id``."""
    rows = [Row(90_000, hit, hit // 2) for hit in range(200)]
    rows += [Row(90_003, hit, first_id + step * (hit // 2)) for hit in range(200)]
    return TASK.warnings(TASK.score(one_block(dataset(TWO_EVENTS), predictions(rows))))


@pytest.mark.parametrize(("first_id", "step"), [(0, 1), (0, 2), (99, 1)])
def test_track_ids_in_two_events_give_a_warning(first_id: int, step: int) -> None:
    (warning,) = warnings(first_id, step)
    assert "90000 and 90003" in warning


@pytest.mark.parametrize("first_id", [100, 2**62])
def test_no_warning_where_track_ids_differ(first_id: int) -> None:
    assert warnings(first_id, 1) == []


def test_unassigned_hits_are_no_repeated_track() -> None:
    rows = [Row(event, hit, -1) for event in TWO_EVENTS for hit in range(200)]
    assert TASK.warnings(TASK.score(one_block(dataset(TWO_EVENTS), predictions(rows)))) == []


# -- real events ----------------------------------------------------------------------------------------


def test_the_particles_themselves_are_the_perfect_answer() -> None:
    truth = flatten(real("tracker_hits"), ["hit_id", "particle_id"])
    oracle = truth.rename_columns(["event_id", "hit_id", "track_id"])
    assert real_metrics(oracle, 0, 5) == {
        "trackml_weighted_efficiency": 1,
        "fake_rate": 0,
        "duplicate_rate": 0,
        "physics_eff_pt1": 1,
        "double_majority_eff_pt1": 1,
    }


def test_the_helix_finder_does_better_than_the_kalman_filter() -> None:
    """On real events, by the same metric; the filter's seeds begin at 0.5 GeV."""
    hits = positions(0, 5, "hit_id")
    floor, kalman, found = (
        real_metrics(predictions, 0, 5)
        for predictions in (naive(hits), ckf(hits | {"tracks": real("tracks")}), helix.reconstruct(hits))
    )
    name = "trackml_weighted_efficiency"
    assert 0.02 < floor[name] < 0.3 < kalman[name] < 0.75 < found[name]
    assert found["physics_eff_pt1"] > max(0.88, kalman["physics_eff_pt1"])
    assert found["fake_rate"] < 0.02
    assert found["duplicate_rate"] < 0.02


def test_the_helix_finder_has_no_loop_over_tracks() -> None:
    """Five events in one, turned by angles of their own, take as many calls as one."""
    alone = next(events_of(real("tracker_hits", 4, 5)))
    turns = np.repeat(np.exp(1j * np.arange(5)), len(alone.x))
    together = np.tile(alone.x + 1j * alone.y, 5) * turns
    five = EventHits(0, np.arange(len(together)), together.real, together.imag, np.tile(alone.z, 5))
    few, many = calls_of(alone), calls_of(five)
    assert many < 1.01 * few


def calls_of(event: EventHits) -> int:
    """How often Python calls a function while it finds the tracks of an event."""
    helix.track_numbers(event)  # fills caches
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        helix.track_numbers(event)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("reconstruct", TASK.baselines().values(), ids=TASK.baselines())
def test_baselines_use_positions_alone_for_a_track_per_hit(reconstruct: Reconstruction) -> None:
    submitted = reconstruct(positions(0, 2))
    assert submitted.column_names == ["event_id", "hit_id", "track_id"]
    assert [submitted.column("event_id").to_pylist().count(event) for event in (0, 1)] == [465, 639]
    assert submitted.column("hit_id").to_pylist() == [*range(465), *range(639)]
    # Tracks of different events have different numbers.
    tracks = set(zip(*(submitted.column(name).to_pylist() for name in ("event_id", "track_id")), strict=True))
    names = [track for _, track in tracks if track >= 0]
    assert len(names) == len(set(names)) > 50


@pytest.mark.parametrize("reconstruct", TASK.baselines().values(), ids=TASK.baselines())
def test_baselines_bear_empty_and_tiny_events(reconstruct: Reconstruction) -> None:
    lists = pa.array([[], [40.0], [40.0, 70.0, 70.0], [0.0] * 6], pa.list_(pa.float32()))
    table = pa.table({"event_id": pa.array(range(4), pa.uint32()), "x": lists, "y": lists, "z": lists})
    assert reconstruct({"tracker_hits": table}).num_rows == 10
