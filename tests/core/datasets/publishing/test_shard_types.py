"""Datasets of other writers are published with equal types in all shards, or refused with what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets.events import CONFIG, first_written, tables_of

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.publishing.preparing import Prepared, Publication, Withholding, prepare
from collidium.datasets.reading.shards import EventTable
from collidium.errors import UnusableDataset


def write(directory: Path, shards: Mapping[int, pa.Table], table: str = "tracker_hits") -> Path:
    folder = directory / "data" / f"{CONFIG}_{table}"
    folder.mkdir(parents=True)
    for number, rows in shards.items():
        pq.write_table(rows, folder / f"train-{number:05d}-of-{len(shards):05d}.parquet")
    return directory


def hits(event: int, values: list[Any], kind: Any, column: str = "particle_id") -> pa.Table:
    return pa.table({"event_id": pa.array([event], pa.uint32()), column: pa.array([values], kind)})


def prepared(directory: Path, scratch: Path) -> Prepared:
    return prepare(Publication(directory, "events"), scratch, lambda *_: None)


def test_shards_of_other_types_are_written_again(tmp_path: Path) -> None:
    kinds = [
        pa.list_(pa.null()),
        pa.large_list(pa.uint64()),
        first_written(pa.list_view(pa.uint32()), pa.large_list(pa.uint32())),
    ]
    values: list[list[int]] = [[], [2**60 + 1], [7]]
    shards = {n: hits(n, *pair) for n, pair in enumerate(zip(values, kinds, strict=True))}
    directory = write(tmp_path / "events", shards)
    before = {path: path.read_bytes() for path in directory.rglob("*.parquet")}
    made = prepared(directory, tmp_path / "scratch")
    published = [pq.read_table(path) for _, path in sorted(made.files.items(), key=lambda pair: pair[0].path)]
    assert [table.schema.field("particle_id").type for table in published] == [pa.list_(pa.uint64())] * 3
    assert [table["particle_id"].to_pylist()[0] for table in published] == values
    assert {path: path.read_bytes() for path in directory.rglob("*.parquet")} == before


def test_shards_of_equal_types_are_published_as_they_are(tmp_path: Path) -> None:
    kind = pa.large_list(pa.uint64())
    directory = write(tmp_path / "events", {n: hits(n, [n], kind) for n in range(2)})
    assert all(
        path.is_relative_to(directory) for path in prepared(directory, tmp_path / "scratch").files.values()
    )


def test_ids_that_no_common_type_holds_are_refused(tmp_path: Path) -> None:
    mixed = {0: hits(0, [-1], pa.list_(pa.int64())), 1: hits(1, [2**63], pa.list_(pa.uint64()))}
    with pytest.raises(
        UnusableDataset, match=r"train-00001.* particle_id does not fit into list<item: int64>"
    ):
        prepared(write(tmp_path / "events", mixed), tmp_path / "scratch")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array([[{"x": 1.0, "y": 2.0}]]),
            "has only records, such as struct<x: double, y: double> in column",
        ),
        (pa.array([{"x": [1.0]}]), "has only records"),
        (pa.array([[("x", 1.0)]], pa.map_(pa.string(), pa.float64())), "has only records"),
    ],
)
def test_tables_of_records_alone_are_refused(tmp_path: Path, column: Any, message: str) -> None:
    table = pa.table({"event_id": pa.array([0], pa.uint32()), "hits": column})
    with pytest.raises(UnusableDataset) as raised:
        prepared(write(tmp_path / "events", {0: table}), tmp_path / "scratch")
    assert message in str(raised.value.errors)


@pytest.mark.parametrize(("ids", "kind"), [([-5], pa.int64()), ([2**63 + 1], pa.uint64())])
def test_impossible_event_ids_are_problems(tmp_path: Path, ids: list[int], kind: Any) -> None:
    table = pa.table({"event_id": pa.array(ids, kind), "x": pa.array([[1.0]])})
    with pytest.raises(UnusableDataset) as raised:
        prepared(write(tmp_path / "events", {0: table}), tmp_path / "scratch")
    assert f"holds {ids[0]}; event ids are from 0" in str(raised.value.errors)


@pytest.mark.packages("polars")
def test_integers_beyond_64_bits_are_a_problem(tmp_path: Path) -> None:
    import polars

    folder = tmp_path / "data" / f"{CONFIG}_tracker_hits"
    folder.mkdir(parents=True)
    ids = polars.Series([0], dtype=polars.UInt32)
    wide = polars.Series([[1]], dtype=polars.List(polars.Int128))
    polars.DataFrame({"event_id": ids, "particle_id": wide}).write_parquet(
        folder / "train-00000-of-00001.parquet"
    )
    with pytest.raises(UnusableDataset) as raised:
        prepared(tmp_path, tmp_path / "scratch")
    assert "more than 64 bits, such as polars' Int128" in str(raised.value.errors)


@pytest.mark.parametrize("writer", ["large", "fixed", "view"])
def test_truth_in_lists_of_all_types_is_withheld(tmp_path: Path, writer: str) -> None:
    tables = tables_of(range(4), hits=20)
    for name, table in tables.items():
        write(tmp_path / "plain", {0: table}, name)
        write(tmp_path / writer, {0: as_written(table, writer)}, name)
    truth = {}
    for name in ("plain", writer):
        held = Withholding(EventRange(2, 4), tmp_path / f"truth-{name}")
        prepare(
            Publication(tmp_path / name, "events", withholding=held), tmp_path / f"s-{name}", lambda *_: None
        )
        truth[name] = {
            table: EventTable(table, sorted(held.truth.rglob(f"{CONFIG}_{table}/*.parquet"))).load()
            for table in tables
        }
    for table in tables:
        assert truth[writer][table].to_pydict() == truth["plain"][table].to_pydict()
    read = dict(Dataset(tmp_path / writer).read(sorted(tables), EventRange(0, 4)))[EventRange(0, 4)]
    assert {table: read[table].to_pydict() for table in tables} == {
        table: tables[table].to_pydict() for table in tables
    }


def as_written(table: pa.Table, writer: str) -> pa.Table:
    """The table with other types of lists: of fixed length where all lists have the same."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column: Any = table[name]
        if pa.types.is_list(column.type):
            lengths = set(np.asarray(column.combine_chunks().value_lengths()).tolist())
            inner = column.type.value_type
            if writer == "fixed":
                kind: Any = pa.list_(inner, lengths.pop()) if len(lengths) == 1 else column.type
            else:
                large = pa.large_list(inner)
                kind = large if writer == "large" else first_written(pa.list_view(inner), large)
            column = pa.array(column.to_pylist(), kind)
        columns[name] = column
    return pa.table(columns)


@pytest.mark.parametrize("x", [pa.array([1.5]), pa.array(["a"]), pa.array([{"x": 1.0}])], ids=str)
def test_columns_that_cannot_be_ordered_are_named(tmp_path: Path, x: Any) -> None:
    """Numbers of rows have to be lists of integers."""
    table = (
        hits(0, [1], pa.list_(pa.uint64())).append_column("x", pa.array([[1.0]])).append_column("hit_id", x)
    )
    held = Withholding(EventRange(0, 1), tmp_path / "truth")
    directory = write(tmp_path / "events", {0: table})
    with pytest.raises(UnusableDataset, match="table tracker_hits: its rows cannot be put in public order"):
        prepare(Publication(directory, "events", withholding=held), tmp_path / "s", lambda *_: None)
