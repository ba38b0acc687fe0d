"""Writing predictions: small files of whole events, and no partial file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.client import predictions
from collidium.client.predictions import PredictionsWriter, write_predictions


def rows(events: int, hits: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "event_id": np.repeat(np.arange(90_000, 90_000 + events), hits),
        "hit_id": np.tile(np.arange(hits), events),
        "track_id": rng.integers(-1, hits // 10, events * hits),
    }


def test_values_come_back_in_32_bits_and_few_bytes(tmp_path: Path) -> None:
    columns = rows(8, 10_000)
    write_predictions(columns, tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet")
    assert all(table.column(name).to_pylist() == values.tolist() for name, values in columns.items())
    assert [str(kind) for kind in table.schema.types] == ["int32"] * 3
    assert (tmp_path / "p.parquet").stat().st_size < 2 * table.num_rows


def test_what_does_not_fit_keeps_its_width(tmp_path: Path) -> None:
    columns = {"event_id": [1, 1], "track_id": pa.array([2**63, 1], pa.uint64()), "score": [0.5, 1.0]}
    write_predictions(columns, tmp_path / "p.parquet")
    assert [str(kind) for kind in pq.read_schema(tmp_path / "p.parquet").types] == [
        "int32",
        "uint64",
        "double",
    ]


def test_row_groups_hold_whole_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "GROUP_ROWS", 25)
    sizes = {1: 10, 2: 10, 4: 10, 5: 60, 6: 25, 7: 1}
    events = np.repeat(list(sizes), list(sizes.values()))
    write_predictions({"event_id": events, "hit_id": np.arange(len(events))}, tmp_path / "whole.parquet")
    with PredictionsWriter(tmp_path / "streamed.parquet") as writer:
        for event in sizes:
            part = events[events == event]
            writer.write({"event_id": part, "hit_id": np.flatnonzero(events == event)})
    for name in ("whole", "streamed"):
        with pq.ParquetFile(tmp_path / f"{name}.parquet") as file:
            groups = [
                np.unique(np.asarray(file.read_row_group(number)["event_id"])).tolist()
                for number in range(file.num_row_groups)
            ]
            assert groups == [[1, 2], [4], [5], [6], [7]]
            assert file.read()["hit_id"].to_pylist() == list(range(len(events)))


def test_rows_are_sorted_by_event_alone(tmp_path: Path) -> None:
    write_predictions({"event_id": [3, 1, 3, 1], "hit_id": [9, 8, 7, 6]}, tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet")
    assert table.to_pydict() == {"event_id": [1, 1, 3, 3], "hit_id": [8, 6, 9, 7]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"hit_id": [1]}, "need a column event_id"),
        ({"event_id": [1.5], "hit_id": [1]}, "must hold integers"),
        ({"event_id": [1, None]}, "nulls"),
        ({"event_id": [1, 2], "hit_id": [1]}, "expected length|lengths|Column"),
    ],
)
def test_invalid_predictions_are_rejected_and_leave_nothing(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write_predictions(columns, tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []


def test_an_aborted_writer_keeps_the_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    write_predictions({"event_id": [1], "hit_id": [1]}, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="event 2 comes after event 2"):
        write_one_event_twice(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def write_one_event_twice(path: Path) -> None:
    with PredictionsWriter(path) as writer:
        writer.write({"event_id": [2], "hit_id": [1]})
        writer.write({"event_id": [2], "hit_id": [2]})


class Frame:
    """Columns by name, as data frames give them; iterating it gives nothing of use."""

    def keys(self) -> list[str]:
        return ["event_id", "hit_id"]

    def __getitem__(self, name: str) -> list[int]:
        return {"event_id": [2, 1], "hit_id": [7, 8]}[name]


class Stream:
    """An arrow stream without a name for its columns, as other data frames give themselves."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.table({"event_id": [2, 1], "hit_id": [7, 8]}).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("frame", [Frame(), Stream()], ids=["by name", "as a stream"])
def test_data_frames_are_written(frame: Frame | Stream, tmp_path: Path) -> None:
    write_predictions(frame, tmp_path / "p.parquet")
    assert pq.read_table(tmp_path / "p.parquet").to_pydict() == {"event_id": [1, 2], "hit_id": [8, 7]}


def test_other_types_raise_a_helpful_type_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="write_predictions"):
        write_predictions([1, 2], tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []


def frames(kind: str) -> list[Any]:
    """The same rows in every form that a library has for them."""
    events, hits, tracks = [3, 3, 4], [0, 1, 0], [2**60 + 1, -1, 7]
    columns = {"event_id": np.array(events), "hit_id": np.array(hits), "track_id": np.array(tracks)}
    if kind == "numpy":
        swapped = {name: values.astype(">i8") for name, values in columns.items()}
        return [columns, swapped, swapped | {"event_id": np.array(events, ">u4")}]
    if kind == "arrow":
        category = pa.array(events).dictionary_encode()
        return [pa.table(columns), pa.table(columns | {"event_id": category})]
    if kind == "polars":
        import polars

        frame = polars.DataFrame(columns)
        halves = polars.concat([frame[:2], frame[2:]], rechunk=False)
        return [frame, halves, {name: halves[name] for name in columns}, frame.cast({"hit_id": polars.UInt8})]
    import pandas

    frame = pandas.DataFrame(columns)
    swapped = pandas.DataFrame(
        {name: pandas.Series(values.astype(">i8")) for name, values in columns.items()}
    )
    return [
        *(frame, frame.set_index("event_id"), frame.set_index(["event_id", "hit_id"])),
        *(frame.set_index("hit_id"), frame.rename_axis("row"), swapped, swapped.set_index("event_id")),
        *(frame.convert_dtypes(), frame.astype("Int64"), frame.astype({"hit_id": "UInt8"})),
        *(frame.astype("category"), frame.convert_dtypes(dtype_backend="pyarrow")),
        *(frame.set_index(np.array([9, 8, 7])), frame.astype(object), dict(frame.items())),
    ]


@pytest.mark.parametrize("kind", ["numpy", "arrow", "polars", "pandas"])
def test_frames_of_all_libraries_are_written_alike(kind: str, tmp_path: Path) -> None:
    for number, frame in enumerate(frames(kind)):
        path = tmp_path / f"{number}.parquet"
        write_predictions(frame, path)
        table = pq.read_table(path).select(["event_id", "hit_id", "track_id"])
        expected = {"event_id": [3, 3, 4], "hit_id": [0, 1, 0], "track_id": [2**60 + 1, -1, 7]}
        assert table.to_pydict() == expected, number
        assert len(pq.read_schema(path).names) == 3, number
        with PredictionsWriter(path) as writer:
            writer.write(frame)
        assert pq.read_table(path).select(list(expected)).to_pydict() == expected, number


def test_unusable_frames_are_named(tmp_path: Path) -> None:
    import pandas
    import polars

    ids = {"event_id": [1], "hit_id": [2]}
    twice = pandas.DataFrame([[1, 2, 3]], columns=["event_id", "hit_id", "hit_id"])
    wide = polars.DataFrame({"event_id": polars.Series([1], dtype=polars.Int128)})
    missing = pandas.DataFrame(ids).astype("Int64")
    missing.loc[0, "hit_id"] = pandas.NA
    for frame, message in [
        (twice, "several columns called hit_id"),
        (pa.table([[1], [2]], names=["event_id", "event_id"]), "several columns called event_id"),
        ({1: [1], "1": [2], "event_id": [1]}, "several columns called 1"),
        (wide, "integers have at most 64 bits"),
        ({"event_id": [2**70]}, "column event_id cannot be converted"),
        (ids | {"track_id": np.zeros((1, 2))}, "column track_id cannot be converted"),
        (missing, "must not have nulls; there are some in hit_id"),
        (pandas.DataFrame({"event_id": [1.0]}), "column event_id must hold integers, not double"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_predictions(frame, tmp_path / "p.parquet")
        assert not list(tmp_path.iterdir())
