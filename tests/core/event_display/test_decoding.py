"""Events in files of other writers are decoded like those of the platform, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets.events import tables_of

from collidium.errors import UnusableDataset
from collidium.event_display import tables as stream
from collidium.event_display.decoding import EventJob, Format, HashJob, RowGroups, hash_rows, make

LISTS = {
    "large": pa.large_list,
    "view": pa.list_view,
    "large view": pa.large_list_view,
    "fixed": lambda kind: pa.list_(kind, 30),
}


def decoded(
    directory: Path, tables: Mapping[str, pa.Table], *, withheld: bool = False, as_: Format = "arrow"
) -> Any:
    """Event 0 of tables, after it was written."""
    groups = {}
    for name, table in tables.items():
        path = directory / f"{name}.parquet"
        pq.write_table(table, path)
        groups[name] = RowGroups(path, (0,))
    made = bytes(make(EventJob(0, groups, tuple(tables), {}, withheld, as_, 10**8)))
    return {name: table.to_pydict() for name, table in stream.read(made).items()} if as_ == "arrow" else made


def written(table: pa.Table, lists: Any) -> pa.Table:
    """The event with other lists; those of a table have 30 entries or are left as they are."""

    def column(name: str) -> Any:
        values: Any = table[name]
        kind = values.type
        if not pa.types.is_list(kind) or (lists is LISTS["fixed"] and len(values[0]) != 30):
            return values
        inner = kind.value_type
        nested = pa.types.is_list(inner) and lists is not LISTS["fixed"]
        return pa.array(values.to_pylist(), lists(lists(inner.value_type) if nested else inner))

    return pa.table({name: column(name) for name in table.column_names})


@pytest.fixture(scope="module")
def event() -> dict[str, pa.Table]:
    return tables_of(range(1), hits=30)


@pytest.mark.parametrize("lists", LISTS)
@pytest.mark.parametrize("withheld", [False, True], ids=["all", "withheld"])
def test_lists_of_all_types_are_shown(
    tmp_path: Path, event: dict[str, pa.Table], lists: str, withheld: bool
) -> None:
    others = {name: written(table, LISTS[lists]) for name, table in event.items()}
    assert others["tracker_hits"].schema.types != event["tracker_hits"].schema.types
    for as_ in ("arrow", "phoenix"):
        expected = decoded(tmp_path, event, withheld=withheld, as_=as_)
        assert decoded(tmp_path, others, withheld=withheld, as_=as_) == expected


def hashed(directory: Path, table: pa.Table) -> set[int]:
    """The hashes of the hits of event 0."""
    path = directory / "hashed.parquet"
    pq.write_table(table, path)
    made = hash_rows(HashJob(0, {"tracker_hits": RowGroups(path, (0,))}))
    return set(made.values.tolist())


@pytest.mark.parametrize("lists", LISTS)
def test_rows_of_all_types_have_the_same_hashes(
    tmp_path: Path, event: dict[str, pa.Table], lists: str
) -> None:
    hits = event["tracker_hits"]
    expected = hashed(tmp_path, hits)
    assert len(expected) == 30
    assert hashed(tmp_path, written(hits, LISTS[lists])) == expected
    renamed = [{"x": "tx", "y": "ty", "z": "tz"}.get(name, name) for name in hits.column_names]
    assert hashed(tmp_path, hits.rename_columns(renamed)) == expected


@pytest.mark.parametrize(
    "column", [pa.nulls(1), pa.array([None], pa.list_(pa.float32()))], ids=["nulls", "null list"]
)
def test_rows_without_values_have_no_hashes(
    tmp_path: Path, event: dict[str, pa.Table], column: pa.Array
) -> None:
    """Such columns are left out of what is shown."""
    hits = event["tracker_hits"]
    assert not hashed(tmp_path, hits.set_column(hits.column_names.index("z"), "z", column))
    assert not hashed(tmp_path, hits.drop_columns(["z"]))
    empty = {name: pa.array([[]], pa.list_(pa.null())) for name in "xyz"}
    assert not hashed(tmp_path, pa.table({"event_id": hits["event_id"], **empty}))
    others = hits.set_column(0, "event_id", pa.array([5], hits["event_id"].type))
    assert not hashed(tmp_path, others)


@pytest.mark.parametrize("withheld", [False, True], ids=["all", "withheld"])
def test_lists_without_a_type_are_shown(tmp_path: Path, event: dict[str, pa.Table], withheld: bool) -> None:
    empty = {
        name: pa.table(
            {
                column: table[column] if column == "event_id" else pa.array([[]], pa.large_list(pa.null()))
                for column in table.column_names
            }
        )
        for name, table in event.items()
    }
    made = decoded(tmp_path, empty, withheld=withheld)
    assert made.keys() == event.keys()
    assert all(not values for table in made.values() for values in table.values())


def test_columns_of_nulls_are_left_out(tmp_path: Path) -> None:
    hits = {"event_id": pa.array([0], pa.uint32()), "x": pa.array([[1.0]]), "y": pa.nulls(1)}
    assert decoded(tmp_path, {"tracker_hits": pa.table(hits)}) == {
        "tracker_hits": {"hit_id": [0], "x": [1.0]}
    }


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array([[{"x": 1.0}]]),
            "table tracker_hits has only records, such as struct<x: double> in column x",
        ),
        (pa.array([["1.0"]], pa.list_(pa.string_view())), "column x has elements of type string"),
        (pa.array([[1]], pa.list_(pa.decimal128(38, 0))), "column x has elements of type decimal128"),
        (pa.array([1.0]), "column x must hold lists"),
    ],
)
def test_what_cannot_be_shown_is_named(tmp_path: Path, column: Any, message: str) -> None:
    hits = pa.table({"event_id": pa.array([0], pa.uint32()), "x": column})
    with pytest.raises(UnusableDataset, match=message):
        decoded(tmp_path, {"tracker_hits": hits})


def test_integers_beyond_64_bits_are_named(tmp_path: Path) -> None:
    import polars

    path = tmp_path / "tracker_hits.parquet"
    polars.DataFrame({"event_id": polars.Series([0], dtype=polars.Int128)}).write_parquet(path)
    job = EventJob(0, {"tracker_hits": RowGroups(path, (0,))}, ("tracker_hits",), {}, False, "arrow", 10**8)
    with pytest.raises(
        UnusableDataset, match="table tracker_hits has a column of integers with more than 64"
    ):
        make(job)
