"""Timing of loaders, which must return exactly the data of the dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.core.datasets.events import tables_of

from collidium.contracts.digest import event_digests
from collidium.scoring.bench import Loaded, Reading, WrongReading, measure

READING = Reading("/nowhere", "ttbar_pu0", "tracker_hits", range(6), (), False)
HITS = tables_of(range(6), hits=40)["tracker_hits"]
EXPECTED = dict(zip(range(6), event_digests(HITS).tolist(), strict=True))


def columns(table: pa.Table) -> dict[str, Any]:
    """A list of NumPy arrays for each column."""
    lists = {
        name: [np.array(values) for values in table.column(name).to_pylist()]
        for name in table.column_names[1:]
    }
    return {"event_id": np.arange(6), **lists}


@pytest.mark.parametrize(
    "load",
    [
        lambda _: HITS,
        lambda _: HITS.to_batches(max_chunksize=2),
        lambda _: (HITS.slice(start, 3) for start in (3, 0)),
        lambda _: HITS.rename_columns(["event_id", "tx", "ty", "tz", *HITS.column_names[4:]]),
        lambda _: columns(HITS),
        lambda _: {name: HITS.column(name) for name in HITS.column_names},
    ],
    ids=["a table", "batches", "pieces in another order", "an older release", "NumPy", "arrow columns"],
)
def test_what_a_loader_may_give(load: Callable[[Reading], Loaded]) -> None:
    measured = measure(load, READING, EXPECTED, repeats=3)
    assert measured.events == 6
    assert len(measured.seconds) == 3
    assert measured.events_per_second == 6 / sorted(measured.seconds)[1]


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda _: HITS.slice(0, 4), "2 events are missing, for example 4"),
        (
            lambda _: tables_of(range(7), hits=40)["tracker_hits"],
            "1 events were not asked for, for example 6",
        ),
        (lambda _: HITS.drop_columns(["time"]), "6 events are not as the dataset has them"),
        (lambda _: tables_of(range(6), hits=40, seed=1)["tracker_hits"], "6 events are not as the dataset"),
        (lambda _: pa.concat_tables([HITS, HITS.slice(0, 1)]), "7 rows of 6 events"),
        (lambda _: HITS.drop_columns(["event_id"]), "no column event_id"),
        (lambda _: HITS.set_column(1, "x", pa.array(["a"] * 6)), "no events of this dataset: column x holds"),
        (lambda _: None, "cannot be made an arrow table: NoneType"),
        (lambda _: [1, 2], "cannot be made an arrow table"),
        (lambda _: [], "cannot be made an arrow table"),
        (lambda _: {"event_id": [1], "x": [1, 2]}, "cannot be made an arrow table"),
    ],
)
def test_what_a_loader_may_not_give(load: Callable[[Reading], Any], message: str) -> None:
    with pytest.raises(WrongReading, match=message):
        measure(load, READING, EXPECTED, repeats=1)


def test_every_reading_is_looked_at() -> None:
    """A loader that is correct only the first time is rejected."""
    answers = iter([HITS, HITS, HITS.slice(0, 3)])
    with pytest.raises(WrongReading, match="3 events are missing"):
        measure(lambda _: next(answers), READING, EXPECTED, repeats=3)


def test_lazy_values_are_computed_while_the_clock_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lazily made chunks and mapped pages are read before the clock stops."""
    from collidium.scoring import bench

    log: list[str] = []

    def clock() -> float:
        log.append("clock")
        return float(len(log))

    looked_at = bench._look_at

    def look_at(table: pa.Table) -> int:
        log.append("bytes")
        return looked_at(table)

    def pieces(_: Reading) -> Any:
        for start in range(0, 6, 3):
            log.append("piece")
            yield HITS.slice(start, 3)

    monkeypatch.setattr(bench, "perf_counter", clock)
    monkeypatch.setattr(bench, "_look_at", look_at)
    measure(pieces, READING, EXPECTED, repeats=1)
    assert log == ["clock", "piece", "piece", "bytes", "clock"]


def test_every_byte_is_looked_at() -> None:
    """Every changed byte changes the result; buffers that chunks share are read once."""
    from collidium.scoring import bench

    values = np.arange(64, dtype=np.uint64)
    whole = pa.table({"n": values})
    pieces = pa.concat_tables([whole.slice(start, 8) for start in range(0, 64, 8)])
    assert bench._look_at(pieces) == bench._look_at(whole) == np.bitwise_xor.reduce(values)
    for place in (0, 17, 63):
        changed = values.copy()
        changed[place] += 64
        assert bench._look_at(pa.table({"n": changed})) != bench._look_at(whole)
