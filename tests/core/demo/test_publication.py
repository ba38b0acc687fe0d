"""What the demo publishes: everything but the truth of the eval events."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from collidium.contracts.task import EventRange
from collidium.demo import EVENTS_DIRECTORY
from collidium.demo.publication import TRUTH_COLUMNS, without_truth

TABLES = {path.stem: pq.read_table(path) for path in EVENTS_DIRECTORY.glob("*.parquet")}
EVALUATION = EventRange(3, 5)


def test_the_five_events_are_shipped() -> None:
    assert set(TABLES) == {"tracker_hits", "particles", "calo_hits", "tracks"}
    hits = TABLES["tracker_hits"]
    assert hits["event_id"].to_pylist() == [0, 1, 2, 3, 4]
    assert [len(ids) for ids in hits["hit_id"].to_pylist()] == [465, 639, 779, 1047, 856]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_nothing_of_the_eval_events_tells_what_belongs_together(name: str) -> None:
    published = without_truth(name, TABLES[name], EVALUATION)
    assert published.schema == TABLES[name].schema
    assert published.slice(0, 3).equals(TABLES[name].slice(0, 3))
    for row in published.slice(3).to_pylist():
        assert name in {"tracker_hits", "calo_hits"}
        assert row["event_id"] in EVALUATION
        assert all(row[column] is None for column in TRUTH_COLUMNS & set(row))
        assert all(row[column] for column in ("x", "y", "z"))


def test_the_hits_of_the_eval_events_are_published() -> None:
    published = without_truth("tracker_hits", TABLES["tracker_hits"], EVALUATION)
    assert published["event_id"].to_pylist() == [0, 1, 2, 3, 4]
    for column in ("hit_id", "x", "y", "z", "volume_id"):
        assert published[column].equals(TABLES["tracker_hits"][column])
