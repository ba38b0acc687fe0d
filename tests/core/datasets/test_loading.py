"""Loading events into memory: events, columns, and one row per hit."""

from __future__ import annotations

import doctest
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium import datasets
from collidium.contracts.task import EventRange
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import InvalidInput, UnusableDataset

LISTS = pa.list_(pa.float32())


def hits(events: range) -> pa.Table:
    """Event ``n`` has ``n % 4`` hits; every name but event_id is that of an older release."""
    values = [[float(event)] * (event % 4) for event in events]
    return pa.table(
        {
            "event_id": pa.array(events, pa.uint32()),
            "tx": pa.array(values, LISTS),
            "ty": pa.array(values, LISTS),
            "majority_particle_id": pa.array(
                [[event] * (event % 4) for event in events], pa.list_(pa.uint64())
            ),
        }
    )


def tracks(events: range) -> pa.Table:
    return pa.table(
        {
            "event_id": pa.array(events, pa.uint32()),
            "d0": pa.array([[0.5, 1.5]] * len(events), LISTS),
            "hit_ids": pa.array([[[1, 2, 3], []]] * len(events), pa.list_(pa.list_(pa.uint32()))),
        }
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Forty events in two shards of four row groups, the later one first."""
    for name, table in (("tracker_hits", hits), ("tracks", tracks)):
        folder = tmp_path / "data" / f"ttbar_pu0_{name}"
        folder.mkdir(parents=True)
        for number, events in enumerate((range(20, 40), range(20))):
            pq.write_table(table(events), folder / f"train-{number:05}-of-00002.parquet", row_group_size=5)
    return tmp_path


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (None, range(40)),
        ("0:40", range(40)),
        ("3:4", range(3, 4)),
        ("4:21", range(4, 21)),
        (range(19, 21), range(19, 21)),
        (EventRange(7, 36), range(7, 36)),
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [["x", "y", "particle_id"], ["x"], ["particle_id", "x"]], ids=str)
def test_requested_events_and_columns_are_loaded(
    directory: Path, events: Any, expected: range, columns: list[str]
) -> None:
    loaded = datasets.load(directory, "ttbar_pu0", "tracker_hits", events, columns=columns)
    every = hits(expected).rename_columns(["event_id", "x", "y", "particle_id"])
    assert loaded.combine_chunks().equals(every.select(["event_id", *columns]))


def test_only_needed_row_groups_are_read(directory: Path) -> None:
    """All of the file but its footer, the event ids and one row group is made unreadable."""
    path = directory / "data/ttbar_pu0_tracker_hits/train-00001-of-00002.parquet"
    footer = pq.read_metadata(path)
    content = bytearray(path.read_bytes())
    for number in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            column = footer.row_group(number).column(index)
            wanted = (number == 1 and column.path_in_schema.startswith("tx")) or index == 0
            start = column.dictionary_page_offset or column.data_page_offset
            if not wanted:
                content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    loaded = datasets.load(directory, "ttbar_pu0", "tracker_hits", "6:9", columns=["x"])
    assert loaded["x"].to_pylist() == [[6.0] * 2, [7.0] * 3, []]
    with pytest.raises(UnusableDataset, match=r"train-00001-of-00002\.parquet: cannot be read as parquet"):
        datasets.load(directory, "ttbar_pu0", "tracker_hits", "3:9", columns=["x"])


def test_several_tables_come_by_name(directory: Path) -> None:
    every = datasets.load(directory, events="0:3", columns={"tracks": ["d0"]})
    assert {name: table.column_names for name, table in every.items()} == {
        "tracker_hits": ["event_id", "x", "y", "particle_id"],
        "tracks": ["event_id", "d0"],
    }
    assert [*datasets.load(directory, tables=["tracks"])] == ["tracks"]


def test_flat_rows_have_positions_as_hit_ids(directory: Path) -> None:
    flat = datasets.load(directory, tables="tracker_hits", events="5:8", rows="flat")
    assert flat.to_pydict() == {
        "event_id": [5, 6, 6, 7, 7, 7],
        "hit_id": [0, 0, 1, 0, 1, 2],
        "x": [5, 6, 6, 7, 7, 7],
        "y": [5, 6, 6, 7, 7, 7],
        "particle_id": [5, 6, 6, 7, 7, 7],
    }
    assert flat.schema.field("event_id").type == pa.uint32()
    some = datasets.load(directory, tables="tracker_hits", events="5:8", rows="flat", columns=["y"])
    assert some.equals(flat.select(["event_id", "hit_id", "y"]))
    ids = datasets.load(directory, tables="tracker_hits", events="5:8", rows="flat", columns=["hit_id"])
    assert ids.equals(flat.select(["event_id", "hit_id"]))


def test_lists_of_lists_become_lists(directory: Path) -> None:
    flat = datasets.load(directory, tables="tracks", events="5:7", rows="flat")
    assert flat.to_pydict() == {
        "event_id": [5, 5, 6, 6],
        "track_id": [0, 1, 0, 1],
        "d0": [0.5, 1.5, 0.5, 1.5],
        "hit_ids": [[1, 2, 3], [], [1, 2, 3], []],
    }


def test_the_hit_ids_of_a_release_are_kept() -> None:
    flat = datasets.load(EVENTS_DIRECTORY, tables="tracker_hits", events="0:2", rows="flat", columns=["x"])
    real = pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet")
    assert flat["hit_id"].to_pylist() == [hit for event in real["hit_id"][:2].to_pylist() for hit in event]
    assert flat.num_rows == 465 + 639
    particles = datasets.load(EVENTS_DIRECTORY, tables="particles", rows="flat")
    assert particles.column_names[:2] == ["event_id", "particle_id"]


def test_withheld_lists_are_null_for_each_hit() -> None:
    rows = pa.table(
        {
            "event_id": [0, 1, 2],
            "x": pa.array([[1.0, 2.0], [3.0], [4.0, 5.0]], LISTS),
            "particle_id": pa.array([[7, 8], None, [9, 9]], pa.list_(pa.uint64())),
        }
    )
    for table in (rows, rows.slice(0, 2), rows.slice(1), rows.slice(1, 1), rows.slice(0, 0)):
        flat = datasets.flat(table, "tracker_hits")
        expected = [
            (event, place, x, ids[place] if ids else None)
            for event, xs, ids in zip(*table.to_pydict().values(), strict=True)
            for place, x in enumerate(xs)
        ]
        assert [*zip(*flat.to_pydict().values(), strict=True)] == expected
        assert flat.schema.field("particle_id").type == pa.uint64()


def test_lists_that_differ_in_length_are_named() -> None:
    rows = pa.table({"event_id": [3, 4], "x": [[1.0], [1.0]], "y": [[1.0], [1.0, 2.0]]})
    with pytest.raises(UnusableDataset, match="column y has 2 entries in event 4, others have 1"):
        datasets.flat(rows, "tracker_hits")


@pytest.mark.parametrize(
    "to", [pytest.param(to, marks=pytest.mark.packages(to)) for to in ("polars", "pandas", "awkward")]
)
def test_tables_are_converted_to_other_libraries(directory: Path, to: Any) -> None:
    library = import_module(to)
    made = datasets.load(directory, tables="tracker_hits", events="5:8", columns=["x"], to=to)
    assert isinstance(made, library.Array if to == "awkward" else library.DataFrame)
    assert [[*event] for event in made["x"]] == [[5.0], [6.0, 6.0], [7.0, 7.0, 7.0]]


@pytest.mark.packages("pandas")
def test_withheld_ids_are_no_floats_in_pandas(tmp_path: Path) -> None:
    large = 2**60 + 1
    columns = {
        "x": pa.array([[1.0], [2.0]]),
        "particle_id": pa.array([[large], None], pa.list_(pa.uint64())),
        "hit_ids": pa.array([[[large, None]], [[1]]], pa.list_(pa.list_(pa.int64()))),
    }
    hits = pa.table({"event_id": pa.array([0, 1], pa.uint32()), **columns})
    pq.write_table(hits, tmp_path / "tracker_hits.parquet")
    frame = datasets.load(tmp_path, tables="tracker_hits", rows="flat", to="pandas")
    assert str(frame["particle_id"].dtype) == "UInt64"
    assert frame["particle_id"].tolist()[0] == large
    assert frame["particle_id"].isna().tolist() == [False, True]
    assert [list(ids) for ids in frame["hit_ids"]] == [[large, None], [1]]
    whole = datasets.load(tmp_path, tables="tracker_hits", events="0:1", rows="flat", to="pandas")
    assert str(whole["particle_id"].dtype) == "uint64"


def test_a_missing_library_is_named(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="to='polars' needs polars: pip install polars"):
        datasets.load(directory, tables="tracks", to="polars")


def test_wrong_arguments_are_reported(directory: Path) -> None:
    wrong: Any = "numpy"
    with pytest.raises(InvalidInput, match="arrow, polars, pandas, awkward, not as 'numpy'"):
        datasets.load(directory, tables="tracks", to=wrong)
    with pytest.raises(InvalidInput, match='"events" or "flat"'):
        datasets.load(directory, tables="tracks", rows=wrong)
    with pytest.raises(InvalidInput, match="by table"):
        datasets.load(directory, columns=["x"])
    with pytest.raises(InvalidInput, match="a list of names"):
        datasets.load(directory, tables="tracks", columns="d0")
    with pytest.raises(InvalidInput, match="no gaps"):
        datasets.load(directory, tables="tracks", events=range(0, 10, 2))
    with pytest.raises(UnusableDataset, match="tracks has no column x; there are: event_id, d0, hit_ids"):
        datasets.load(directory, tables="tracks", columns=["x"])
    with pytest.raises(
        UnusableDataset, match=r"events 30:50: 40:50 are missing \(available events: 0 to 39\)"
    ):
        datasets.load(directory, tables="tracks", events="30:50")


def test_missing_events_within_a_shard_are_named(tmp_path: Path) -> None:
    table = hits(range(10))
    pq.write_table(table.filter(pa.array(np.arange(10) != 4)), tmp_path / "tracker_hits.parquet")
    with pytest.raises(UnusableDataset, match="lacks 1 of the 10 events 0:10, for example 4"):
        datasets.load(tmp_path, tables="tracker_hits", events="0:10")
    assert datasets.load(tmp_path, tables="tracker_hits").num_rows == 9


def test_shards_in_no_folder_are_read(tmp_path: Path) -> None:
    """As a simulation with --flat writes them; what is hidden is a user's work."""
    for number, events in enumerate((range(3), range(3, 5))):
        pq.write_table(hits(events), tmp_path / f"tracker_hits-{number:05}-of-00002.parquet")
    (tmp_path / ".collidium").mkdir()
    pq.write_table(hits(range(9)), tmp_path / ".collidium" / "tracker_hits.parquet")
    assert datasets.load(tmp_path, tables="tracker_hits").num_rows == 5
    (entry,) = datasets.list_configs(tmp_path)
    assert (entry.config, entry.tables, entry.shards) == ("", ("tracker_hits",), 2)
    (table,) = datasets.list_tables(tmp_path, "ttbar_pu0")
    assert (table.events, table.first_event, table.last_event) == (5, 0, 4)


@pytest.mark.parametrize("name", ["loading", "reading.dataset"])
def test_examples_in_docstrings_run(name: str) -> None:
    results = doctest.testmod(import_module(f"collidium.datasets.{name}"))
    assert (results.failed, results.attempted > 0) == (0, True)
