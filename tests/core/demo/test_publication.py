"""What the demo publishes: everything but the truth of the eval events."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from collidium.datasets.publishing.public_order import in_public_order
from collidium.datasets.publishing.public_part import without_truth
from collidium.demo import EVENTS_DIRECTORY

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
