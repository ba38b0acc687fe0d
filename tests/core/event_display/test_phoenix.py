"""Events for Phoenix: the format of the loader of phoenix-event-display 3.0, and correct numbers."""

from __future__ import annotations

import json
from math import cosh, hypot, isclose, pi
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets.events import CONFIG, jets_of, tables_of, write

from collidium.contracts.task import EventRange
from collidium.datasets import sample
from collidium.errors import UnusableDataset
from collidium.event_display import phoenix
from collidium.event_display.phoenix import export
from collidium.event_display.tables import shown
from collidium.testing.processes import isolated_environment
from collidium.testing.server import run_command

EVENT = 3


@pytest.fixture(scope="module")
def stored() -> dict[str, dict[str, Any]]:
    """Event 3 of the sample as it is stored."""
    return {
        name: pq.read_table(sample.DIRECTORY / f"{name}.parquet").slice(EVENT, 1).to_pylist()[0]
        for name in ("tracker_hits", "tracks", "calo_hits")
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("phoenix") / "events.json"
    made = export(sample.DIRECTORY, EventRange(2, 5), path, config=sample.CONFIG)
    assert (made.events, made.bytes, made.revision) == (3, path.stat().st_size, "local")
    return path


@pytest.fixture(scope="module")
def event(file: Path) -> dict[str, Any]:
    document = json.loads(file.read_bytes())
    assert list(document) == ["Event 2", "Event 3", "Event 4"]
    return dict(document[f"Event {EVENT}"])


def test_an_event_has_the_collections_that_phoenix_draws(event: dict[str, Any]) -> None:
    assert event["eventNumber"] == EVENT
    assert set(event) == {"runNumber", "eventNumber", "Hits", "Tracks", "CaloClusters"}
    names = [name for kind in ("Hits", "Tracks", "CaloClusters") for name in event[kind]]
    assert len(names) == len(set(names))  # it finds a collection by its name alone
    assert all(entries for kind in ("Hits", "Tracks", "CaloClusters") for entries in event[kind].values())


def test_every_hit_is_a_point_of_its_volume(event: dict[str, Any], stored: dict[str, Any]) -> None:
    hits = stored["tracker_hits"]
    for volume in set(hits["volume_id"]):
        collection = event["Hits"][f"Hits, volume {volume}"]
        # Kind and colour of all are those of the first; its colour is read by parseInt without a base.
        assert collection[0]["type"] == "Point"
        assert int(collection[0]["color"], 16) > 0
        rows = [row for row, of in enumerate(hits["volume_id"]) if of == volume]
        places = [[hits[axis][row] for axis in "xyz"] for row in rows]
        assert np.allclose([hit["pos"] for hit in collection], places, atol=1e-3)
    assert sum(map(len, event["Hits"].values())) == len(hits["x"])


def test_tracks_pass_through_their_hits_from_the_perigee_on(
    event: dict[str, Any], stored: dict[str, Any]
) -> None:
    hits, tracks = stored["tracker_hits"], stored["tracks"]
    place = {hit: [hits[axis][row] for axis in "xyz"] for row, hit in enumerate(hits["hit_id"])}
    for row, track in enumerate(event["Tracks"]["Tracks"]):
        perigee, *points = track["pos"]
        assert isclose(hypot(*perigee[:2]), abs(tracks["d0"][row]), abs_tol=2e-3)
        assert isclose(perigee[2], tracks["z0"][row], abs_tol=2e-3)
        there = [place[hit] for hit in tracks["hit_ids"][row] if hit in place]
        assert np.allclose(sorted(points), sorted(there), atol=1e-3)
        assert track["dparams"][4] == pytest.approx(tracks["qop"][row] / 1000)  # 1/MeV
        # p = pT cosh(eta), in MeV.
        assert track["pT"] * cosh(track["eta"]) == pytest.approx(abs(1000 / tracks["qop"][row]), rel=1e-6)
        assert abs(track["phi"]) <= pi + 1e-6


def test_towers_add_up_to_the_energy_of_their_cells(event: dict[str, Any], stored: dict[str, Any]) -> None:
    towers = event["CaloClusters"]["Calorimeters"]
    total = 1000 * sum(stored["calo_hits"]["total_energy"])
    assert 0.9 * total < sum(tower["energy"] for tower in towers) <= total * 1.001
    assert len(towers) < len(stored["calo_hits"]["x"])
    for tower in towers:
        assert set(tower) == {"eta", "phi", "energy", "radius"}
        assert abs(tower["phi"]) < pi
        assert tower["radius"] > 0


def test_cells_are_calibrated_where_their_calorimeter_is_known() -> None:
    cells = pa.table(
        {
            "event_id": pa.array([0], pa.uint32()),
            "detector": [[10, 13, 10]],
            "x": [[1300.0, 2200.0, float("nan")]],
            "y": [[0.0, 0.0, 1.0]],
            "z": [[0.0, 0.0, 1.0]],
            "total_energy": [[0.1, 0.1, 0.1]],
        }
    )
    towers = phoenix.event({"calo_hits": shown("calo_hits", cells)}, 0, {})["CaloClusters"]
    (ecal,), (hcal,) = towers["ECal"], towers["HCal"]
    assert ecal["energy"] == pytest.approx(3750)  # 37.5 in the barrel of the ECal
    assert hcal["energy"] == pytest.approx(4500)  # 45.0 in that of the HCal
    assert (ecal["radius"], hcal["radius"]) == (1300.0, 2200.0)


def test_jets_have_the_energy_of_their_four_vectors(tmp_path: Path) -> None:
    tables = tables_of(range(1))
    jets = jets_of(tables["calo_hits"])
    write(tmp_path / "events", {**tables, "jets": jets})
    export(tmp_path / "events", EventRange(0, 1), tmp_path / "file.json", config=CONFIG)
    (event,) = json.loads((tmp_path / "file.json").read_bytes()).values()
    first = event["Jets"]["Jets"][0]
    pt, eta, mass = (jets.column(name)[0][0].as_py() for name in ("pt", "eta", "mass"))
    assert first["energy"] == pytest.approx(1000 * hypot(pt * cosh(eta), mass))
    assert first["coneR"] == 0.4


def test_values_that_are_no_numbers_are_left_out() -> None:
    nan = float("nan")
    tables = {
        "tracker_hits": {"x": [1.0, nan], "y": [1.0, 2.0], "z": [None, 3.0]},
        "tracks": {
            "d0": [0.0, 0.0],
            "z0": [0.0, 0.0],
            "phi": [nan, 1.0],
            "theta": [1.0, 1.0],
            "qop": [1.0, 0.0],
        },
        "jets": {"pt": [nan], "eta": [1.0], "phi": [1.0], "mass": [1.0]},
    }
    rows = {
        name: shown(name, pa.table({"event_id": [0], **{c: [values] for c, values in columns.items()}}))
        for name, columns in tables.items()
    }
    assert json.loads(phoenix.document(rows, 0, {})) == {"Event 0": {"runNumber": 0, "eventNumber": 0}}


def test_a_file_is_whole_or_as_it_was(file: Path, tmp_path: Path) -> None:
    place = tmp_path / "events.json"
    place.write_text("before")
    broken = write(tmp_path / "broken", tables_of(range(6)), events_per_shard=3)
    (second,) = broken.rglob("*tracker_hits/*00001*.parquet")
    content = second.read_bytes()
    second.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    with pytest.raises(UnusableDataset):
        export(broken, EventRange(0, 6), place)
    assert place.read_text() == "before"
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_the_command_writes_a_file(tmp_path: Path) -> None:
    place = tmp_path / "event.json"
    arguments = ("datasets", "export", str(sample.DIRECTORY), "--events", "1:2", "-o", str(place), "--json")
    done = run_command(arguments, isolated_environment(tmp_path, {}), tmp_path)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert (output["events"], output["bytes"]) == (1, place.stat().st_size)
    assert list(json.loads(place.read_bytes())) == ["Event 1"]


@pytest.mark.parametrize(
    ("config", "message"), [("ttbar_pu9", "there is no config ttbar_pu9"), (None, "several configs")]
)
def test_the_config_must_be_one_of_those_there_are(tmp_path: Path, config: str | None, message: str) -> None:
    tables = tables_of(range(1))
    directory = write(tmp_path / "events", tables)
    (directory / f"data/{CONFIG}_particles").rename(directory / "data/zee_pu0_particles")
    with pytest.raises(UnusableDataset, match=message):
        export(directory, EventRange(0, 1), tmp_path / "file.json", config=config)


def test_what_polars_writes_is_exported_alike(tmp_path: Path) -> None:
    import polars

    for table in ("tracker_hits", "tracks", "calo_hits"):
        polars.read_parquet(sample.DIRECTORY / f"{table}.parquet").write_parquet(
            tmp_path / f"{table}.parquet"
        )
    for directory, name in ((tmp_path, "theirs"), (sample.DIRECTORY, "ours")):
        export(directory, EventRange(0, 2), tmp_path / f"{name}.json", config=sample.CONFIG)
    assert (tmp_path / "theirs.json").read_bytes() == (tmp_path / "ours.json").read_bytes()
