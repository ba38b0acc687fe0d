"""The task keeps its contract, and its metrics are those that a person finds by hand."""

import pyarrow as pa
import pytest
from collidium_task_vertexing import VertexingTask, synthetic

from collidium.contracts.task import Block, EventRange, UnusableTruth
from collidium.testing.conformance import check_task

TASK = VertexingTask()
EVENTS = synthetic.tables(events=10, pileup=10)


def truth_of(vz: list[list[float]], vertex: list[list[int]]) -> dict[str, pa.Table]:
    columns = {
        "event_id": pa.array(range(len(vz)), pa.uint32()),
        "vz": pa.array(vz, pa.list_(pa.float32())),
        "vertex_primary": pa.array(vertex, pa.list_(pa.uint16())),
    }
    return TASK.prepare({"particles": pa.table(columns)})


#: The hard scatter of event 0 is at 2 mm (a particle decayed at 9), that of event 1 at -40; event 2 has none.
TRUTH = truth_of([[2, 30, 2, 9], [-40, -40, 70], [1]], [[1, 2, 1, 1], [1, 1, 3], [2]])


def block(event_ids: list[int], z: list[float]) -> Block:
    return Block(EventRange(0, 3), pa.table({"event_id": event_ids, "z": pa.array(z, pa.float64())}), TRUTH)


def metrics(event_ids: list[int], z: list[float]) -> dict[str, float]:
    submitted = block(event_ids, z)
    assert TASK.check(submitted) == []
    return TASK.metrics(TASK.merge([TASK.score(submitted)]))


def test_the_task_keeps_its_contract() -> None:
    check_task(TASK, EVENTS)


def test_truth_is_the_median_of_the_hard_scatters_particles() -> None:
    assert TRUTH["vertices"].to_pylist() == [{"event_id": 0, "z": 2}, {"event_id": 1, "z": -40}]


def test_particles_that_the_generator_did_not_make_do_not_move_the_vertex() -> None:
    truth = TASK.prepare(synthetic.tables(events=3, pileup=0))["vertices"]
    assert truth.num_rows == 3


def test_vertices_within_a_tenth_of_a_millimetre_are_found() -> None:
    assert metrics([0, 1, 2], [2.03, -39.96, 5]) == {
        "efficiency": 1,
        "resolution": pytest.approx(35.355, abs=0.01),
    }
    assert metrics([0, 1], [2.0, -39.8]) == {"efficiency": 0.5, "resolution": 0}


def test_nothing_found_has_the_worst_resolution() -> None:
    assert metrics([], []) == {"efficiency": 0, "resolution": 100}
    assert metrics([0], [30]) == {"efficiency": 0, "resolution": 100}


def test_all_problems_are_reported_together() -> None:
    problems = TASK.check(block([0, 0, 1], [1.0, 2.0, 5000.0]))
    assert [problem.code for problem in problems] == ["duplicate-row", "outside"]
    assert problems[1].examples == ({"event_id": 1, "z": 5000.0},)


def test_a_dataset_without_vertices_is_refused() -> None:
    with pytest.raises(UnusableTruth, match="particles lacks vz"):
        TASK.prepare({"particles": EVENTS["particles"].drop_columns(["vz"])})


def test_momentum_distinguishes_hard_scatter_and_pileup() -> None:
    truth = {"vertices": TASK.prepare(EVENTS)["vertices"]}
    scores = {
        name: TASK.metrics(
            TASK.score(Block(EventRange(0, 10), reconstruct({"tracks": EVENTS["tracks"]}), truth))
        )
        for name, reconstruct in TASK.baselines().items()
    }
    assert scores["densest"]["efficiency"] < 0.5 < scores["hardest"]["efficiency"]
    assert scores["hardest"]["resolution"] < 50
