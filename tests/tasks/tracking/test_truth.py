"""Truth tables from the tables of a dataset, in all the shapes that datasets come in; hits' weights."""

from __future__ import annotations

import pyarrow as pa
import pytest

from collidium.contracts.task import UnusableTruth

from .blocks import TASK

HUGE = 2**64 - 1
NEARLY = HUGE - 1


def hits(**columns: pa.Array) -> pa.Table:
    """Two events, of four and of two hits."""
    standard = {
        "event_id": pa.array([3, 8], pa.uint32()),
        "particle_id": pa.array([[HUGE, 0, NEARLY, HUGE], [5, 5]], pa.list_(pa.uint64())),
        **{name: pa.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0]]) for name in "xyz"},
    }
    return pa.table({**standard, **columns})


def particles(**columns: pa.Array) -> pa.Table:
    """Of the same events; particle 77 has no hits."""
    standard = {
        "event_id": pa.array([3, 8], pa.uint32()),
        "particle_id": pa.array([[HUGE, 77, NEARLY], [5]], pa.list_(pa.uint64())),
        "pt": pa.array([[2.0, 9.0, 0.5], [1.5]]),
    }
    return pa.table({**standard, **columns})


def prepare(tracker_hits: pa.Table, particle_table: pa.Table, hits: str = "uniform") -> dict[str, pa.Table]:
    return TASK.prepare_with({"tracker_hits": tracker_hits, "particles": particle_table}, {"hits": hits})


def test_hits_are_numbered_by_their_particles_place() -> None:
    table = prepare(hits(), particles())["hits"]
    assert table.to_pydict() == {
        "event_id": [3, 3, 3, 3, 8, 8],
        "hit_id": [0, 1, 2, 3, 0, 1],
        "particle": [2, 0, 1, 2, 1, 1],
    }


def test_particles_with_hits_are_kept_in_the_order_of_their_ids() -> None:
    table = prepare(hits(), particles())["particles"]
    assert table.to_pydict() == {
        "event_id": [3, 3, 8],
        "particle_id": [NEARLY, HUGE, 5],
        "hits": [1, 2, 2],
        "high_pt": [False, True, True],
        "accepted": [False, False, False],
        "efficiency_pt": [0, 0, 0],
        "efficiency_eta": [0, 0, 0],
        "efficiency_radius": [0, 0, 0],
    }
    assert table.schema.field("particle_id").type == pa.uint64()


def test_every_table_has_event_ids_of_32_bits() -> None:
    assert {table.schema.field("event_id").type for table in prepare(hits(), particles()).values()} == {
        pa.uint32()
    }


@pytest.mark.parametrize("kind", [pa.uint32(), pa.int64(), pa.uint64()])
def test_hit_ids_keep_their_type(kind: pa.DataType) -> None:
    ids = pa.array([[9, 5, 7, 100], [1, 0]], pa.list_(kind))
    table = prepare(hits(hit_id=ids), particles())["hits"]
    assert table.column("hit_id").to_pylist() == [9, 5, 7, 100, 1, 0]
    assert table.schema.field("hit_id").type == kind


def test_weights_are_kept_but_noise_weighs_nothing() -> None:
    weights = pa.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32()))
    table = prepare(hits(weight=weights), particles(), "weighted")["hits"]
    assert table.column("weight").to_pylist() == [1, 0, 3, 4, 5, 6]
    assert "weight" not in prepare(hits(weight=weights), particles(), "uniform")["hits"].column_names


def test_transverse_momentum_from_its_components() -> None:
    table = particles().drop_columns(["pt"])
    table = table.append_column("px", pa.array([[0.8, 0.0, 0.6], [-1.0]]))
    table = table.append_column("py", pa.array([[-0.7, 0.0, 0.8], [0.1]]))
    assert prepare(hits(), table)["particles"].column("high_pt").to_pylist() == [False, True, True]


def test_only_primary_particles_where_they_are_marked() -> None:
    primary = pa.array([[False, True, True], [True]])
    result = prepare(hits(), particles(primary=primary))["particles"]
    assert result.column("high_pt").to_pylist() == [False, False, True]


def test_a_particle_that_is_not_listed_still_has_its_hits() -> None:
    listed = particles(particle_id=pa.array([[NEARLY], []], pa.list_(pa.uint64())), pt=pa.array([[3.0], []]))
    result = prepare(hits(), listed)["particles"]
    assert result.column("hits").to_pylist() == [1, 2, 2]
    assert result.column("high_pt").to_pylist() == [True, False, False]


def test_an_event_that_the_particles_table_lacks() -> None:
    result = prepare(hits(), particles().slice(0, 1))["particles"]
    assert result.column("high_pt").to_pylist() == [False, True, False]


def test_the_schema_is_the_same_for_a_block_without_hits() -> None:
    full, empty = prepare(hits(), particles()), prepare(hits().slice(0, 0), particles().slice(0, 0))
    assert {name: table.schema for name, table in full.items()} == {
        name: table.schema for name, table in empty.items()
    }


def nested(kind: pa.DataType, *lists: list[object]) -> pa.Array:
    return pa.array(lists, pa.list_(kind))


@pytest.mark.parametrize(
    ("tracker_hits", "particle_table", "message"),
    [
        (hits().drop_columns(["particle_id"]), particles(), "tracker_hits, column particle_id"),
        (hits(), particles().drop_columns(["particle_id"]), "particles, column particle_id"),
        (hits().drop_columns(["z"]), particles(), "neither weight nor x, y and z"),
        (hits(hit_id=nested(pa.int32(), [1, 2, 1, 3], [1, 2])), particles(), "1 appears twice in event 3"),
        (hits(hit_id=nested(pa.int32(), [1, -2, 1, 3], [1, 2])), particles(), "has negative ids"),
        (hits(hit_id=nested(pa.float64(), [1, 2, 3, 4], [1, 2])), particles(), "no integer type"),
        (hits(hit_id=nested(pa.int32(), [1, None, 3, 4], [1, 2])), particles(), "hit_id: has nulls"),
        (hits(hit_id=nested(pa.int32(), [1, 2, 3], [1, 2])), particles(), "differ in length"),
        (hits(weight=nested(pa.float64(), [1, 1, 1, -1], [1, 1])), particles(), "negative or not finite"),
        (
            hits(weight=nested(pa.float64(), [1, 1, 1, float("nan")], [1, 1])),
            particles(),
            "negative or not finite",
        ),
        (hits(event_id=pa.array([3, 3], pa.uint32())), particles(), "event appears twice"),
        (hits(event_id=pa.array([8, 3], pa.uint32())), particles(), "out of order"),
        (hits(), particles(particle_id=nested(pa.uint64(), [6, 7, 6], [5])), "6 appears twice in event 3"),
    ],
)
def test_what_cannot_be_truth_is_refused(
    tracker_hits: pa.Table, particle_table: pa.Table, message: str
) -> None:
    with pytest.raises(UnusableTruth, match=message):
        prepare(tracker_hits, particle_table, "weighted")
