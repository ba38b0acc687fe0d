"""The demo: how its orders end, and the events that it ships."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from collidium.datasets.publishing.blinding import in_public_order, without_truth
from collidium.demo import EVENTS_DIRECTORY
from collidium.demo.loop import MOCK, order_events
from collidium.errors import CollidiumError
from collidium.testing.server import ServerProcess


def test_a_request_that_fails_ends_the_demo(tmp_path: Path) -> None:
    reports: list[str] = []
    env = {"PLATFORM_MOCK_OUTCOME": "failed", "PLATFORM_MOCK_SECONDS": "0.2"}
    with ServerProcess(tmp_path, env=env) as server:
        tokens = {name: server.add_user(name) for name in ("alice", "collidium")}
        with pytest.raises(CollidiumError, match="is failed, not completed: the mock runner is set to fail"):
            order_events(server.base_url, tokens, reports.append, MOCK)
    assert reports[-1].endswith("is failed")


def test_the_same_order_must_be_answered_by_the_first(tmp_path: Path) -> None:
    env = {"PLATFORM_DEDUP_DAYS": "0", "PLATFORM_MOCK_SECONDS": "0.2"}
    with ServerProcess(tmp_path, env=env) as server:
        tokens = {name: server.add_user(name) for name in ("alice", "collidium")}
        with pytest.raises(CollidiumError, match="did not return the request of the first"):
            order_events(server.base_url, tokens, lambda _: None, MOCK)


TABLES = {path.stem: pq.read_table(path) for path in EVENTS_DIRECTORY.glob("*.parquet")}


def test_the_five_events_are_shipped() -> None:
    assert set(TABLES) == {"tracker_hits", "particles", "calo_hits", "tracks"}
    hits = TABLES["tracker_hits"]
    assert hits["event_id"].to_pylist() == [0, 1, 2, 3, 4]
    assert [len(ids) for ids in hits["hit_id"].to_pylist()] == [465, 639, 779, 1047, 856]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_eval_events_reveal_no_truth(name: str) -> None:
    ordered = in_public_order({table: TABLES[table].slice(3) for table in TABLES})
    published = without_truth(name, ordered[name])
    assert published.schema == TABLES[name].schema
    assert published["event_id"].to_pylist() == [3, 4]
    for column in ("particle_id", "majority_particle_id", "pt", "pdg_id"):
        if column in published.column_names:
            assert published[column].null_count == 2
    for column in ("x", "y", "z", "hit_id", "hit_ids"):
        if column in published.column_names:
            assert published[column].null_count == 0
