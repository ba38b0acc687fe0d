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
