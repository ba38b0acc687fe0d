"""Copies of events are recognised by sketches of their public rows; other events are not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.core.datasets.events import CONFIG, tables_of, write

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.row_hashes import hashes_of
from collidium.errors import UnusableDataset
from collidium.scoring.truth import sketches
from collidium.scoring.truth.sketches import Sketches

EVENTS = range(100, 130)
HITS = 400
Rows = dict[str, list[Any]]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Sketches:
    """The sketches of thirty events."""
    directory = tmp_path_factory.mktemp("scored")
    dataset = Dataset(write(directory / "events", made_with(42)), CONFIG)
    events = EventRange(EVENTS.start, EVENTS.stop)
    names = sketches.hashed_tables(dataset, events)
    assert names == ("tracker_hits", "calo_hits", "tracks")
    sketches.write(directory / "sketches", dataset, names, events, "secret")
    return Sketches.open(directory / "sketches")


@cache
def made_with(seed: int) -> dict[str, pa.Table]:
    return tables_of(EVENTS, hits=HITS, seed=seed)


def hits_of(event: int, seed: int = 42) -> Rows:
    row = made_with(seed)["tracker_hits"].select(["x", "y", "z"]).slice(event, 1).to_pydict()
    return {name: values[0] for name, values in row.items()}


def table_of(rows: Rows, kind: pa.DataType | None = None) -> pa.Table:
    kind = pa.list_(kind or pa.float32())
    return pa.table({name: pa.array([values], kind) for name, values in rows.items()})


def taken(rows: Rows, places: Any) -> Rows:
    return {name: [values[place] for place in places] for name, values in rows.items()}


def moved(rows: Rows, by: float) -> Rows:
    random = np.random.default_rng(5)
    return {name: (values + random.normal(0, by, len(values))).tolist() for name, values in rows.items()}


def last_bit(rows: Rows) -> Rows:
    up = np.float32(np.inf)
    return {name: np.nextafter(np.float32(values), up).tolist() for name, values in rows.items()}


def with_others(rows: Rows) -> Rows:
    """With nine times as many hits of other events."""
    others = [hits_of(event, seed=7) for event in range(9)]
    return {
        name: [*values, *(hit for other in others for hit in other[name])] for name, values in rows.items()
    }


ATTACKS: dict[str, Callable[[Rows], Rows]] = {
    "copied": lambda rows: rows,
    "reordered": lambda rows: taken(rows, np.random.default_rng(1).permutation(len(rows["x"]))),
    "one removed": lambda rows: taken(rows, range(1, len(rows["x"]))),
    "half removed": lambda rows: taken(rows, range(len(rows["x"]) // 2)),
    "the other half": lambda rows: taken(rows, range(len(rows["x"]) // 2, len(rows["x"]))),
    "every second": lambda rows: taken(rows, range(0, len(rows["x"]), 2)),
    "duplicated": lambda rows: {name: values * 3 for name, values in rows.items()},
    "last bit": last_bit,
    "moved by 10 um": lambda rows: moved(rows, 0.01),
    "among others": with_others,
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_changed_copy_of_an_event_is_recognised(scored: Sketches, attack: Callable[[Rows], Rows]) -> None:
    for event in range(len(EVENTS)):
        assert scored.has(hashes_of("tracker_hits", table_of(attack(hits_of(event))))[0])


def test_a_cast_copy_of_an_event_is_recognised(scored: Sketches) -> None:
    assert scored.has(hashes_of("tracker_hits", table_of(hits_of(0), pa.float64()))[0])


def test_columns_that_are_no_numbers_are_rejected() -> None:
    """The display refuses them, too."""
    rows = {name: [str(value) for value in values] for name, values in hits_of(0).items()}
    with pytest.raises(UnusableDataset, match="cannot be compared"):
        hashes_of("tracker_hits", table_of(rows, pa.string()))


def test_events_of_another_seed_are_not_recognised(scored: Sketches) -> None:
    for event in range(len(EVENTS)):
        assert not scored.has(hashes_of("tracker_hits", table_of(hits_of(event, seed=43)))[0])


def test_a_tenth_of_an_event_is_not_recognised(scored: Sketches) -> None:
    """The documented limit: less than a quarter of the hits."""
    few = [taken(hits_of(event), range(HITS // 20)) for event in range(len(EVENTS))]
    assert sum(scored.has(hashes_of("tracker_hits", table_of(rows))[0]) for rows in few) == 0


@pytest.mark.parametrize(("name", "column"), [("calo_hits", "z"), ("tracks", "z0")])
def test_each_table_alone_recognises_an_event(scored: Sketches, name: str, column: str) -> None:
    table = made_with(42)[name].slice(3, 1)
    assert scored.has(hashes_of(name, table)[0])
    place = table.column_names.index(column)
    shifted = pa.array([[value + 7 for value in table[column][0].as_py()]], table[column].type)
    assert not scored.has(hashes_of(name, table.set_column(place, column, shifted))[0])


def test_the_kept_rows_depend_on_the_secret(tmp_path: Path) -> None:
    """Otherwise the kept rows alone could be left out of a copy."""
    dataset = Dataset(write(tmp_path / "events", made_with(42)), CONFIG)
    events = EventRange(EVENTS.start, EVENTS.start + 1)
    kept = []
    for secret in ("one", "two", "one"):
        path = tmp_path / secret
        sketches.write(path, dataset, ["tracker_hits"], events, secret)
        kept.append(pa.ipc.open_file(path).read_all()["hash"].to_pylist())
    assert kept[0] == kept[2]
    assert len({*kept[0], *kept[1]}) > 1.5 * sketches.KEPT


def test_batches_of_sketches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are found in each of several batches."""
    monkeypatch.setattr(sketches, "_BATCH", 100)
    dataset = Dataset(write(tmp_path / "events", made_with(42), events_per_shard=5), CONFIG)
    monkeypatch.setattr("collidium.datasets.reading.dataset.MAX_BLOCK_EVENTS", 4)
    events = EventRange(EVENTS.start, EVENTS.stop)
    sketches.write(tmp_path / "sketches", dataset, ["tracker_hits"], events, "secret")
    reader = pa.ipc.open_file(tmp_path / "sketches")
    assert reader.num_record_batches == 8
    found = Sketches.open(tmp_path / "sketches")
    assert all(found.has(hashes_of("tracker_hits", table_of(hits_of(event)))[0]) for event in range(30))


def test_columns_of_different_lengths_are_rejected() -> None:
    rows = {"x": [1.0, 2.0], "y": [1.0], "z": [1.0, 2.0]}
    with pytest.raises(UnusableDataset, match="different lengths"):
        hashes_of("tracker_hits", table_of(rows))
