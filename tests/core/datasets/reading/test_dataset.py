"""Tables are read by blocks of events, for any order of shards and in bounded memory."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import UnusableDataset


def hits(events: Sequence[int], name: str = "tx") -> pa.Table:
    """Event ``n`` has ``n % 7`` hits at ``n``."""
    lists = pa.array([[float(event)] * (event % 7) for event in events], pa.list_(pa.float64()))
    return pa.table({"event_id": pa.array(events, pa.uint32()), name: lists})


def dataset(directory: Path, *shards: Sequence[int], row_group_size: int = 3) -> Dataset:
    folder = directory / "data" / "ttbar_pu0_tracker_hits"
    folder.mkdir(parents=True)
    for number, events in enumerate(shards):
        path = folder / f"train-{number:05}-of-{len(shards):05}.parquet"
        pq.write_table(hits(events), path, row_group_size=row_group_size)
    return Dataset(directory)


SHARDS = {
    "one": (range(40),),
    "in order": (range(10), range(10, 25), range(25, 40)),
    "in any order": (range(25, 40), range(10), range(10, 25)),
    "interleaved": (range(0, 40, 3), range(1, 40, 3), range(2, 40, 3)),
    "one event each": tuple([event] for event in range(39, -1, -1)),
    "one of them empty": (range(40), range(0)),
}


@pytest.mark.parametrize("how", SHARDS)
@pytest.mark.parametrize("block_bytes", [1, 200, 10**9])
@pytest.mark.parametrize("events", [EventRange(0, 40), EventRange(7, 31), EventRange(39, 40)], ids=str)
def test_blocks_have_all_events_of_the_range_in_order(
    tmp_path: Path, how: str, block_bytes: int, events: EventRange
) -> None:
    source = dataset(tmp_path, *SHARDS[how])
    read = list(source.read(["tracker_hits"], events, block_bytes=block_bytes))
    assert [block.start for block, _ in read] + [events.stop] == [events.start] + [b.stop for b, _ in read]
    for block, tables in read:
        assert tables["tracker_hits"].column("event_id").to_pylist() == list(range(block.start, block.stop))
    whole = pa.concat_tables([tables["tracker_hits"] for _, tables in read])
    assert whole.equals(hits(range(events.start, events.stop), "x").cast(whole.schema))


def test_real_events_keep_their_values() -> None:
    source = Dataset(EVENTS_DIRECTORY)
    blocks = list(source.read(["tracker_hits", "particles"], EventRange(1, 5), block_bytes=1))
    assert [block.start for block, _ in blocks] == [1, 2, 3, 4]
    stored = pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet").slice(1)
    assert pa.concat_tables([tables["tracker_hits"] for _, tables in blocks]).equals(stored)


#: Runs in a separate process, because threads may free memory of other tests meanwhile.
READ_WITHOUT_COLLECTOR = """
import gc, sys
from pathlib import Path
import pyarrow as pa
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
source = Dataset(Path(sys.argv[1]))
before = pa.total_allocated_bytes()
gc.disable()
blocks = sum(1 for _ in source.read(["tracker_hits"], EventRange(0, 40), block_bytes=200))
assert blocks > 1, blocks
assert pa.total_allocated_bytes() == before, (pa.total_allocated_bytes(), before)
"""


def test_decoded_memory_is_freed_with_the_reader(tmp_path: Path) -> None:
    """Without the garbage collector, which does not count the memory of Arrow."""
    dataset(tmp_path, *SHARDS["in order"])
    command = [sys.executable, "-c", READ_WITHOUT_COLLECTOR, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_tables_of_one_block_have_the_same_events(tmp_path: Path) -> None:
    dataset(tmp_path, range(20), range(20, 40))
    folder = tmp_path / "data" / "ttbar_pu0_particles"
    folder.mkdir()
    pq.write_table(hits(range(100), "pt"), folder / "train-00000-of-00001.parquet", row_group_size=100)
    for block, tables in Dataset(tmp_path).read(
        ["particles", "tracker_hits"], EventRange(5, 33), block_bytes=300
    ):
        for table in tables.values():
            assert table.column("event_id").to_pylist() == list(range(block.start, block.stop))


def test_missing_events_are_counted_and_named(tmp_path: Path) -> None:
    source = dataset(tmp_path, range(10), range(20, 30))
    with pytest.raises(UnusableDataset) as raised:
        list(source.read(["tracker_hits"], EventRange(5, 35)))
    assert "lacks 15 of the 30 events 5:35" in raised.value.detail
    assert "for example 10, 11, 12, 13, 14 " in raised.value.detail
    assert "available events: 0 to 29" in raised.value.detail


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ([range(10), range(9, 20)], r"1 events .* event 9 in train-00000.* and train-00001"),
        ([[3, 2, 1]], "not ascending"),
        ([[4, 5, 6, 1, 2, 3]], "not ascending"),  # between two row groups
    ],
)
def test_event_ids_must_be_unique_and_ascending(
    tmp_path: Path, shards: list[Sequence[int]], message: str
) -> None:
    source = dataset(tmp_path, *shards)
    with pytest.raises(UnusableDataset, match=message):
        source.table("tracker_hits")


def test_equal_event_ids_do_not_fill_memory(tmp_path: Path) -> None:
    """A few kB encode 30 million equal ids, which would take 240 MB in memory."""
    rows = pa.table({"event_id": pa.array(np.zeros(30_000_000, np.uint32))})
    pq.write_table(rows, tmp_path / "tracker_hits.parquet", row_group_size=len(rows))
    del rows
    tracemalloc.start()
    try:
        with pytest.raises(UnusableDataset, match="event 0 occurs twice"):
            Dataset(tmp_path).table("tracker_hits")
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024**2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_an_invalid_parquet_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tracker_hits.parquet").write_bytes(content)
    with pytest.raises(UnusableDataset, match=r"tracker_hits\.parquet: cannot be read"):
        Dataset(tmp_path).table("tracker_hits")


@pytest.mark.parametrize(
    "event_id", [pa.array([1.0, 2.0]), pa.array(["1", "2"]), pa.array([1, None]), None], ids=str
)
def test_a_shard_without_integer_event_ids_is_rejected(tmp_path: Path, event_id: pa.Array | None) -> None:
    columns = {"x": pa.array([[1.0], [2.0]])} | ({} if event_id is None else {"event_id": event_id})
    pq.write_table(pa.table(columns), tmp_path / "tracker_hits.parquet")
    with pytest.raises(UnusableDataset, match="event_id"):
        Dataset(tmp_path).table("tracker_hits")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableDataset, match="no directory"):
        Dataset(tmp_path / "absent")


def test_shards_may_differ_in_the_width_of_a_column(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "ttbar_pu0_tracker_hits"
    folder.mkdir(parents=True)
    narrow, wide = pa.list_(pa.float32()), pa.list_(pa.float64())
    for number, kind in enumerate((narrow, wide)):
        table = pa.table({"event_id": [2 * number, 2 * number + 1], "x": pa.array([[1.5], [2.5]], kind)})
        pq.write_table(table, folder / f"train-{number}.parquet")
    ((_, tables),) = Dataset(tmp_path).read(["tracker_hits"], EventRange(0, 4))
    assert np.asarray(pa.compute.list_flatten(tables["tracker_hits"]["x"])).tolist() == [1.5, 2.5] * 2
