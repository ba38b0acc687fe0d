"""Every way to read a damaged shard reports its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium import datasets
from collidium.contracts.task import EventRange
from collidium.datasets.reading.dataset import Dataset
from collidium.datasets.reading.shards import parquet_errors
from collidium.errors import UnusableDataset

NAME = "train-00000-of-00001.parquet"
WAYS: dict[str, Callable[[Path], object]] = {
    "load": lambda place: datasets.load(place, tables="tracker_hits", events="0:2"),
    "flat": lambda place: datasets.load(place, tables="tracker_hits", events="0:2", rows="flat"),
    "read": lambda place: list(Dataset(place).read(["tracker_hits"], EventRange(0, 2))),
}
IDS = pa.array([0, 1], pa.uint32())
LISTS = pa.array([[1.0], [2.0]])


def shard(directory: Path, table: pa.Table) -> Path:
    path = directory / "data" / "ttbar_pu0_tracker_hits" / NAME
    path.parent.mkdir(parents=True)
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("column", ["x", "weight"])
def test_a_repeated_column_is_rejected(tmp_path: Path, column: str, way: str) -> None:
    shard(tmp_path, pa.Table.from_arrays([IDS, LISTS, LISTS], ["event_id", column, column]))
    with pytest.raises(UnusableDataset, match=f"{NAME}: has a column twice"):
        WAYS[way](tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_page_is_reported_with_its_file(tmp_path: Path, way: str) -> None:
    path = shard(tmp_path, pa.table({"event_id": IDS, "x": LISTS}))
    column = pq.read_metadata(path).row_group(0).column(1)
    start = column.dictionary_page_offset or column.data_page_offset
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * column.total_compressed_size)
    with pytest.raises(UnusableDataset, match=f"{NAME}: cannot be read as parquet"):
        WAYS[way](tmp_path)


def test_exhausted_memory_is_not_reported_as_damage() -> None:
    """A scoring worker then reports that a limit was exceeded."""
    with pytest.raises(MemoryError), parquet_errors(NAME):
        raise pa.ArrowMemoryError("malloc of size 64 failed")
