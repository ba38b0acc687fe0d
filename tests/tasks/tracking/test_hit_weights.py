"""``collidium hit-weights``: datasets to train with have the weights that scores are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from collidium.contracts.tables import flatten
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.schemas import folder
from collidium.datasets.writing import ShardWriter
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import UnusableDataset
from collidium_tasks.hit_weights import add_weights

from .blocks import TASK

EVENTS = EventRange(0, 5)
SOURCES = tuple(TASK.card.truth_sources)


def tables(directory: Path) -> dict[str, pa.Table]:
    return {name: Dataset(directory).table(name).load(EVENTS) for name in SOURCES}


def write(directory: Path, made: dict[str, pa.Table], events_per_shard: int) -> None:
    for name, table in made.items():
        place = directory / folder("ttbar_pu0", name)
        with ShardWriter(place, "train", table.schema, events_per_shard=events_per_shard) as writer:
            writer.write(table)


def test_shards_get_the_weights_of_the_truth(tmp_path: Path) -> None:
    before = tables(EVENTS_DIRECTORY)
    write(tmp_path, before, 2)
    assert add_weights(tmp_path) == 3
    after = tables(tmp_path)
    added = np.asarray(flatten(after["tracker_hits"], ["weight"]).column("weight"))
    assert added == pytest.approx(np.asarray(TASK.prepare(before)["hits"].column("weight")), rel=1e-6)
    assert added.sum() == pytest.approx(5, rel=1e-6)
    kept = after["tracker_hits"].drop_columns(["weight"])
    assert kept.equals(before["tracker_hits"].select(kept.column_names).cast(kept.schema))
    assert add_weights(tmp_path) == 0


def test_a_shard_stays_as_it_is_where_weights_cannot_be_made(tmp_path: Path) -> None:
    before = tables(EVENTS_DIRECTORY)
    hits = before["tracker_hits"]
    unknown = hits.set_column(
        hits.column_names.index("particle_id"), "particle_id", pa.array([[None]] * 5, pa.list_(pa.uint64()))
    )
    write(tmp_path, before | {"tracker_hits": unknown}, 5)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    with pytest.raises(UnusableDataset, match="particle_id"):
        add_weights(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == files
