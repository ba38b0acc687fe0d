"""Lists, integers and texts of all types are read as the hosted format has them, or refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets.events import is_written

from collidium import datasets
from collidium.contracts import tables
from collidium.contracts.tables import as_type, plain_type
from collidium.datasets.reading.dataset import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import UnusableDataset
from collidium.learning import EventStream

FLOATS = [
    pa.large_list(pa.float32()),
    pa.list_(pa.float32(), 2),
    pa.list_view(pa.float32()),
    pa.large_list_view(pa.float32()),
]
NESTED = [pa.large_list(pa.list_view(pa.uint32())), pa.list_(pa.list_(pa.uint32(), 2), 1)]


def shards(directory: Path, *columns: tuple[Any, Any], name: str = "particle_id") -> Path:
    """Write shards of one event each, from the values and the type of a column."""
    folder = directory / "ttbar_pu0_tracker_hits"
    folder.mkdir()
    for number, (values, kind) in enumerate(columns):
        table = pa.table({"event_id": pa.array([number], pa.uint32()), name: pa.array([values], kind)})
        pq.write_table(table, folder / f"train-{number:05d}-of-{len(columns):05d}.parquet")
    return directory


@pytest.mark.parametrize("kind", [*FLOATS, *NESTED], ids=str)
def test_lists_of_all_types_are_plain(kind: Any) -> None:
    nested = kind in NESTED
    lists: Sequence[Any] = [[[1, 2]], None, [[3, 4]]] if nested else [[1, 2], None, [3, 4]]
    column = pa.chunked_array([pa.array(lists, kind), pa.array(lists, kind)[1:]])
    made = as_type(column, plain_type(kind))
    made.validate(full=True)
    assert pa.types.is_list(made.type)
    assert made.to_pylist() == [*lists, *lists[1:]]


def test_large_lists_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MAX_ELEMENTS", 3)
    column = pa.chunked_array([pa.array([[1, 2], [3], [4, 5], [6]], pa.large_list(pa.int64()))])
    made = as_type(column, pa.list_(pa.int64()))
    assert (made.num_chunks, made.to_pylist()) == (2, column.to_pylist())


@pytest.mark.parametrize("kind", [*filter(is_written, FLOATS)], ids=str)
def test_lists_of_all_types_are_read(tmp_path: Path, kind: Any) -> None:
    shards(tmp_path, ([1.0, 2.0], kind), ([], pa.list_(pa.null())), ([3.0, 4.0], kind), name="x")
    expected = [[1.0, 2.0], [], [3.0, 4.0]]
    table = datasets.load(tmp_path, None, "tracker_hits")
    assert table.column("x").to_pylist() == expected
    assert table.schema.field("x").type == pa.list_(pa.float32())
    rows = datasets.load(tmp_path, None, "tracker_hits", rows="flat")
    assert rows.column("x").to_pylist() == [1.0, 2.0, 3.0, 4.0]
    for size in (1, 3):
        batches = list(EventStream(tmp_path, None, "tracker_hits", batch=size))
        assert [one.tolist() for batch in batches for one in batch["x"]] == expected
        assert {batch["x"].values.dtype for batch in batches} == {np.dtype(np.float32)}
    assert batches[0].padded(2).tables["tracker_hits"]["x"].tolist() == [[1, 2], [0, 0], [3, 4]]


def test_a_first_shard_without_values_has_other_types(tmp_path: Path) -> None:
    shards(tmp_path, ([], pa.list_(pa.null())), (None, pa.null()), ([7], pa.large_list(pa.uint64())))
    table = datasets.load(tmp_path, None, "tracker_hits")
    assert table.column("particle_id").to_pylist() == [[], None, [7]]
    assert table.schema.field("particle_id").type == pa.list_(pa.uint64())
    read = Dataset(tmp_path).table("tracker_hits")
    assert read.load(columns=["particle_id"]) == table


def test_columns_without_values_have_the_hosted_type(tmp_path: Path) -> None:
    shards(tmp_path, ([], pa.list_(pa.null())), ([], pa.large_list(pa.null())))
    batch = next(iter(EventStream(tmp_path, None, "tracker_hits", batch=2)))
    assert batch["particle_id"].values.dtype == np.uint64


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (([2**60 + 1], pa.uint64()), ([3], pa.int64()), pa.int64()),
        (([3], pa.int64()), ([2**60 + 1], pa.uint64()), pa.int64()),
        (([-1], pa.int8()), ([2**32 - 1], pa.uint32()), pa.int64()),
        (([-1], pa.int32()), ([2**63 - 1], pa.uint64()), pa.int64()),
        (([2**60 + 1], pa.uint64()), ([5.0], pa.float64()), pa.uint64()),
    ],
)
def test_ids_of_mixed_shards_remain_integers(tmp_path: Path, first: Any, second: Any, expected: Any) -> None:
    shards(tmp_path, *((values, pa.list_(kind)) for values, kind in (first, second)))
    wanted = [*first[0], *second[0]]
    table = datasets.load(tmp_path, None, "tracker_hits")
    assert table.schema.field("particle_id").type == pa.list_(expected)
    assert [value for one in table.column("particle_id").to_pylist() for value in one] == wanted
    for size in (1, 2):
        batches = list(EventStream(tmp_path, None, "tracker_hits", batch=size))
        assert [value for batch in batches for value in batch["particle_id"].values.tolist()] == wanted
        assert all(batch["particle_id"].values.dtype.kind in "iu" for batch in batches)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (([1], pa.int64()), ([2**63 + 5], pa.uint64())),
        (([2**60 + 1], pa.uint64()), ([0.5], pa.float64())),
    ],
)
def test_ids_without_a_common_type_name_the_shard(tmp_path: Path, first: Any, second: Any) -> None:
    shards(tmp_path, *((values, pa.list_(kind)) for values, kind in (first, second)))
    with pytest.raises(UnusableDataset, match=r"00001-of-00002.parquet: column particle_id does not fit"):
        datasets.load(tmp_path, None, "tracker_hits")
    with pytest.raises(UnusableDataset, match=r"00001-of-00002.parquet: column particle_id does not fit"):
        list(EventStream(tmp_path, None, "tracker_hits", batch=2))


def test_columns_without_a_common_type_name_both_shards(tmp_path: Path) -> None:
    shards(tmp_path, ([1], pa.list_(pa.int64())), (["a"], pa.list_(pa.large_string())))
    with pytest.raises(UnusableDataset, match=r" in train-00000-of-00002.parquet, but .* in train-00001-of"):
        datasets.load(tmp_path, None, "tracker_hits")


def test_a_column_of_one_shard_is_null_in_others(tmp_path: Path) -> None:
    folder = tmp_path / "ttbar_pu0_tracks"
    folder.mkdir()
    first, second = ({"d0": [[1.0]]}, {"d0": [[2.0]], "note": ["late"]})
    for number, columns in enumerate((first, second)):
        path = folder / f"train-0000{number}-of-00002.parquet"
        pq.write_table(pa.table({"event_id": pa.array([number], pa.uint32()), **columns}), path)
    assert datasets.load(tmp_path, None, "tracks").column("note").to_pylist() == [None, "late"]


@pytest.mark.parametrize(
    "kind", [*filter(is_written, [pa.string_view(), pa.large_string(), pa.string()])], ids=str
)
def test_texts_of_all_types_are_read(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "channels.parquet"
    text = pa.array([["ttbar"], ["zmumu"]], pa.list_(kind))
    pq.write_table(pa.table({"event_id": pa.array([0, 1], pa.uint32()), "channel": text}), path)
    assert datasets.load(tmp_path, None, "channels").column("channel").to_pylist() == [["ttbar"], ["zmumu"]]
    batch = next(iter(EventStream(tmp_path, None, "channels", batch=2)))
    assert batch["channel"].values.tolist() == ["ttbar", "zmumu"]


@pytest.mark.parametrize(
    ("ids", "kind", "message"),
    [
        ([-5, 3], pa.int64(), "holds -5; event ids are from 0 to 9223372036854775806"),
        ([2**63 + 1, 2**63 + 2], pa.uint64(), "holds 9223372036854775810; event ids are from 0"),
        ([0, 2**63 - 1], pa.int64(), "holds 9223372036854775807; event ids are from 0"),
        ([0.0, 1.0], pa.float64(), "must hold integers, not double"),
        ([0, 1], pa.decimal128(38, 0), r"must hold integers, not decimal128\(38, 0\)"),
        (["0", "1"], pa.large_string(), "must hold integers, not large_string"),
        ([0, None], pa.uint32(), "has nulls"),
    ],
)
def test_impossible_event_ids_are_refused(tmp_path: Path, ids: Any, kind: Any, message: str) -> None:
    made = pa.table({"event_id": pa.array(ids, kind), "x": pa.array([[1.0], [2.0]])})
    pq.write_table(made, tmp_path / "tracker_hits.parquet")
    for read in (lambda: datasets.load(tmp_path, None, "tracker_hits"), lambda: list(EventStream(tmp_path))):
        with pytest.raises(UnusableDataset, match=f"tracker_hits.parquet: column event_id {message}"):
            read()


def test_the_largest_event_ids_are_streamed(tmp_path: Path) -> None:
    ids = [0, 2**53, 2**53 + 1, 2**63 - 2]
    made = pa.table({"event_id": pa.array(ids, pa.uint64()), "x": pa.array([[1.0]] * 4)})
    pq.write_table(made, tmp_path / "tracker_hits.parquet", row_group_size=2)
    batches = list(EventStream(tmp_path, None, "tracker_hits", batch=2))
    assert [event for batch in batches for event in batch.event_id.tolist()] == ids


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([[{"x": 1.0}]]), "holds struct<x: double>"),
        (pa.array([[1]], pa.list_(pa.decimal128(38, 0))), "holds decimal128"),
    ],
)
def test_streams_refuse_values_that_are_no_numbers(tmp_path: Path, values: Any, message: str) -> None:
    made = pa.table({"event_id": pa.array([0], pa.uint32()), "x": values})
    pq.write_table(made, tmp_path / "tracker_hits.parquet")
    with pytest.raises(UnusableDataset, match=f"column x: {message}"):
        list(EventStream(tmp_path, None, "tracker_hits"))


@pytest.mark.packages("polars")
def test_integers_beyond_64_bits_are_named(tmp_path: Path) -> None:
    import polars

    hits = polars.Series([[1]], dtype=polars.List(polars.Int128))
    frame = polars.DataFrame({"event_id": polars.Series([0], dtype=polars.UInt32), "particle_id": hits})
    frame.write_parquet(tmp_path / "tracker_hits.parquet")
    for read in (lambda: datasets.load(tmp_path, None, "tracker_hits"), lambda: list(EventStream(tmp_path))):
        with pytest.raises(UnusableDataset, match="integers with more than 64 bits, such as polars' Int128"):
            read()


@pytest.mark.packages("polars")
def test_what_polars_writes_is_read_as_it_was(tmp_path: Path) -> None:
    import polars

    for table in ("tracker_hits", "tracks"):
        frame = polars.read_parquet(EVENTS_DIRECTORY / f"{table}.parquet")
        frame.write_parquet(tmp_path / f"{table}.parquet")
        original = datasets.load(EVENTS_DIRECTORY, None, table)
        read = datasets.load(tmp_path, None, table)
        assert read.schema.types == original.schema.types
        assert read.to_pydict() == original.to_pydict()
