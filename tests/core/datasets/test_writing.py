"""Written shards have whole events, canonical columns, and are complete."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset, writing
from collidium.datasets.schemas import SCHEMAS
from collidium.datasets.writing import ShardWriter, write_dataset


def hits(first: int, stop: int) -> pa.Table:
    """Events with as many hits as their id says, of plain Python types."""
    columns: dict[str, object] = {"event_id": list(range(first, stop))}
    for field in SCHEMAS["tracker_hits"]:
        if field.name != "event_id":
            columns[field.name] = [[n % 7 for n in range(event)] for event in range(first, stop)]
    return pa.table(columns).cast(SCHEMAS["tracker_hits"])


def blocks(*edges: int) -> Iterator[dict[str, pa.Table]]:
    for first, stop in pairwise(edges):
        yield {"tracker_hits": hits(first, stop)}


def test_shards_do_not_depend_on_blocks(tmp_path: Path) -> None:
    made = write_dataset(tmp_path, "ttbar_pu0", blocks(0, 7, 8, 25), events_per_shard=10)
    folder = tmp_path / "data/ttbar_pu0_tracker_hits"
    assert made["tracker_hits"] == [folder / f"train-0000{n}-of-00003.parquet" for n in range(3)]
    assert [pq.read_metadata(path).num_rows for path in made["tracker_hits"]] == [10, 10, 5]
    assert sorted(folder.iterdir()) == made["tracker_hits"]
    ((_, tables),) = Dataset(tmp_path).read(["tracker_hits"], EventRange(0, 25))
    assert tables["tracker_hits"].equals(hits(0, 25))


def test_files_have_the_hosted_schema_with_its_units(tmp_path: Path) -> None:
    (path,) = write_dataset(tmp_path, "ttbar_pu0", blocks(0, 3), events_per_shard=10)["tracker_hits"]
    assert pq.read_schema(path).equals(SCHEMAS["tracker_hits"])
    assert pq.read_schema(path).field("x").metadata == {b"unit": b"mm"}


def test_row_groups_are_bounded_and_only_events_have_statistics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "GROUP_BYTES", 4 * hits(40, 41).nbytes)
    (path,) = write_dataset(tmp_path, "ttbar_pu0", blocks(0, 40), events_per_shard=100)["tracker_hits"]
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        assert len(groups) > 3
        ranges = [(s.min, s.max) for group in groups if (s := group.column(0).statistics)]
        assert len(ranges) == len(groups)
        assert (ranges[0][0], ranges[-1][1]) == (0, 39)
        assert all((last or 0) + 1 == first for (_, last), (first, _) in pairwise(ranges))
        assert not any(
            group.column(index).is_stats_set for group in groups for index in range(1, group.num_columns)
        )
        assert pa.Table.from_batches(file.iter_batches()).equals(hits(0, 40))


def test_other_tables_keep_their_types(tmp_path: Path) -> None:
    table = pa.table({"event_id": pa.array([1, 2], pa.uint32()), "muons": [[{"pt": 1.5}], []]})
    made = write_dataset(tmp_path, "a_pu0", [{"muons": table}], events_per_shard=10)
    assert pq.read_table(made["muons"][0]).equals(table)


def test_an_empty_table_has_an_empty_shard(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "tracks", SCHEMAS["tracks"], events_per_shard=10) as writer:
        writer.write(SCHEMAS["tracks"].empty_table())
    assert [path.name for path in writer.paths] == ["tracks-00000-of-00001.parquet"]
    assert pq.read_schema(writer.paths[0]).equals(SCHEMAS["tracks"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda table: table.drop_columns(["x"]), "columns are"),
        (lambda table: table.append_column("more", table["x"]), "columns are"),
        (lambda table: table, "events must be ascending"),
        (lambda table: pa.concat_tables([hits(50, 51), hits(50, 51)]), "events must be ascending"),
    ],
)
def test_an_error_leaves_no_files(tmp_path: Path, wrong: object, message: str) -> None:
    assert callable(wrong)

    def write() -> None:
        with ShardWriter(tmp_path, "hits", SCHEMAS["tracker_hits"], events_per_shard=3) as writer:
            writer.write(hits(0, 10))
            writer.write(wrong(hits(5, 12)))

    with pytest.raises(ValueError, match=message):
        write()
    assert list(tmp_path.iterdir()) == []
