"""Exports to HepMC3 and ROOT."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium import datasets
from collidium.contracts.task import EventRange
from collidium.datasets.exporting import export
from collidium.datasets.exporting.hepmc3 import event_texts
from collidium.datasets.schemas import SCHEMAS
from collidium.datasets.writing import write_dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Conflict, UnusableDataset
from collidium.testing.server import run_command

#: Two collisions: a Z that decays to muons, whose photon was made in the detector; a pion, and one from afar.
PARTICLES: list[dict[str, Any]] = [
    {"particle_id": 1, "pdg_id": 13, "pz": 45.0, "energy": 45.0, "parent_id": 2, "vertex_primary": 1},
    {"particle_id": 2, "pdg_id": 23, "energy": 91.0, "mass": 91.0, "vz": 1.0, "time": 1.0},
    {"particle_id": 3, "pdg_id": -13, "pz": -45.0, "energy": 45.0, "parent_id": 2},
    {"particle_id": 4, "pdg_id": 22, "parent_id": 3, "primary": False},
    {"particle_id": 5, "pdg_id": 211, "px": 3.0, "energy": 5.0, "vz": -9.0, "vertex_primary": 2},
    {"particle_id": 6, "pdg_id": -211, "px": 3.0, "energy": 5.0, "vx": 7.0, "vz": -9.0, "vertex_primary": 2},
]
EXPECTED = """\
E 4 4 10
U GEV MM
P 1 0 2212
P 2 0 2212
V -1 0 [1,2] @ 0 0 1 299.792
P 3 -1 23 2
P 4 0 2212
P 5 0 2212
V -2 0 [4,5] @ 0 0 -9 0
P 6 -2 211 1
P 7 -2 90 2
V -3 0 [7] @ 7 0 -9 0
P 8 -3 -211 1
V -4 0 [3] @ 0 0 0 0
P 9 -4 13 1
P 10 -4 -13 1
"""


def particles(*rows: dict[str, Any], event_id: int = 4) -> pa.Table:
    usual = {"parent_id": -1, "primary": True, "vertex_primary": 1}
    return pa.table(
        {
            field.name: [event_id]
            if field.name == "event_id"
            else [[row.get(field.name, usual.get(field.name, 0)) for row in rows]]
            for field in SCHEMAS["particles"]
        },
        SCHEMAS["particles"],
    )


def short(text: str) -> str:
    """Vertices with rounded positions; particles without momenta, and beams without status."""
    lines = []
    for line in text.splitlines():
        words = line.split()
        if words[0] == "V":
            words[5:] = [f"{float(word):g}" for word in words[5:]]
        if words[0] == "P":
            words = words[:4] + ([] if words[3] == "2212" else words[-1:])
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def test_hepmc3_has_the_generators_tree() -> None:
    (text,) = event_texts(particles(*PARTICLES))
    assert short(text.decode()) == EXPECTED


def test_unknown_parents_have_the_sum_of_momenta() -> None:
    (text,) = event_texts(particles(*PARTICLES))
    unknown = next(line for line in text.decode().splitlines() if " 90 " in line).split()
    assert [float(word) for word in unknown[4:9]] == pytest.approx([3, 0, 0, 5, 4])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parent_id": [1, 2]}, "length in event 4"),
        ({"parent_id": [3, 1, 2, 3, -1, -1]}, "ancestors"),
        ({"pdg_id": None}, "event 4 are withheld"),
    ],
)
def test_hepmc3_rejects_inconsistent_particles(changes: dict[str, Any], message: str) -> None:
    table = particles(*PARTICLES)
    for name, values in changes.items():
        table = table.set_column(
            table.column_names.index(name), name, pa.array([values], pa.list_(pa.int64()))
        )
    with pytest.raises(UnusableDataset, match=message):
        list(event_texts(table))


@pytest.mark.packages("uproot")
def test_root_has_all_columns(tmp_path: Path) -> None:
    import uproot

    made = export(EVENTS_DIRECTORY, tmp_path / "events.root", "root", events=EventRange(1, 4))
    assert (made.events, made.bytes) == (3, (tmp_path / "events.root").stat().st_size)
    with uproot.open(made.file) as file:
        trees = {name.partition(";")[0]: tree.arrays() for name, tree in file.items()}
    stored = datasets.load(EVENTS_DIRECTORY, "ttbar_pu0", events="1:4")
    assert set(trees) == set(stored)
    for name, table in stored.items():
        for column in table.column_names:
            if column != "hit_ids":
                assert trees[name][column].tolist() == table.column(column).to_pylist(), (name, column)
    for event, lists in zip(trees["tracks"], stored["tracks"].column("hit_ids").to_pylist(), strict=True):
        assert event.hit_ids.tolist() == [hit for track in lists for hit in track]
        assert event.hit_ids_lengths.tolist() == [len(track) for track in lists]


@pytest.mark.packages("uproot")
def test_root_leaves_out_what_are_no_numbers(tmp_path: Path) -> None:
    import uproot

    written = {
        "half": pa.array([[1.5], []], pa.list_(pa.float16())),
        "fixed": pa.array([[1, 2], [3, 4]], pa.list_(pa.uint64(), 2)),
        "views": pa.array([[True], []], pa.list_view(pa.bool_())),
        "lists": pa.array([[[1], []], []], pa.large_list(pa.list_view(pa.int32()))),
        "weight": pa.array([0.5, None], pa.float16()),
    }
    others = {
        "channel": pa.array(["ttbar", "zee"]),
        "kind": pa.array(["a", "b"]).dictionary_encode(),
        "kinds": pa.array([["a"], []], pa.list_(pa.string_view())),
        "made": pa.array([0, 1], pa.timestamp("us")),
        "took": pa.array([[0], [1]], pa.list_(pa.duration("s"))),
        "big": pa.array([[1], [2]], pa.list_(pa.decimal128(38, 0))),
        "record": pa.array([{"x": 1}, {"x": 2}]),
        "none": pa.array([[], []], pa.list_(pa.null())),
        "deep": pa.array([[[[1]]], []]),
    }
    table = pa.table({"event_id": pa.array([0, 1], pa.uint32()), **written, **others})
    pq.write_table(table, tmp_path / "tracker_hits.parquet")
    made = export(tmp_path, tmp_path / "events.root", "root")
    assert [name.partition(" ")[0] for name in made.left_out] == [f"tracker_hits.{name}" for name in others]
    with uproot.open(made.file) as file:
        arrays = {
            name: array.tolist()
            for name, array in file["tracker_hits"].arrays(library="ak", how=dict).items()
        }
    assert not arrays.keys() & others.keys()
    assert (arrays["half"], arrays["fixed"], arrays["views"]) == ([[1.5], []], [[1, 2], [3, 4]], [[True], []])
    assert (arrays["lists"], arrays["lists_lengths"]) == ([[1], []], [[1, 0], []])
    assert arrays["weight"][0] == 0.5


@pytest.mark.packages("uproot")
def test_root_refuses_ids_with_nulls(tmp_path: Path) -> None:
    ids = pa.array([[2**60 + 1, None]], pa.list_(pa.uint64()))
    pq.write_table(pa.table({"event_id": [0], "particle_id": ids}), tmp_path / "tracker_hits.parquet")
    with pytest.raises(UnusableDataset, match="column particle_id has nulls"):
        export(tmp_path, tmp_path / "events.root", "root")


@pytest.mark.packages("uproot")
def test_the_command_names_what_root_leaves_out(tmp_path: Path, isolated_environment: dict[str, str]) -> None:
    hits = pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet")
    hits = hits.append_column("channel", pa.array(["ttbar"] * len(hits)))
    pq.write_table(hits, tmp_path / "tracker_hits.parquet")
    command = ["datasets", "export", str(tmp_path), "--config", "ttbar_pu0", "--format", "root"]
    command += ["--events", "0:1", "-o", str(tmp_path / "x.root")]
    done = run_command(command, isolated_environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Left out, as they hold no numbers: tracker_hits.channel (string)." in done.stderr


def test_hepmc3_keeps_64_bits_of_ids() -> None:
    """Ids that are equal as floats, and a parent id of another type, which has no particle."""
    near = [{"particle_id": 2**60 + n, "parent_id": 2**60 + 1 if n > 1 else -1} for n in (1, 2, 3)]
    table = particles(*near)
    ids = pa.array([[2**60 + 1, 2**60 + 2, 2**60 + 3]], pa.list_(pa.uint64()))
    table = table.set_column(table.column_names.index("particle_id"), "particle_id", ids)
    parents = pa.array([[-1, 2**60 + 1, 2**60 + 2]], pa.list_(pa.int64()))
    table = table.set_column(table.column_names.index("parent_id"), "parent_id", parents)
    text = b"".join(event_texts(table)).decode()
    assert [line.split()[1:4] for line in text.splitlines() if line.startswith("P")][2:] == [
        ["3", "-1", "0"],
        ["4", "-2", "0"],
        ["5", "-3", "0"],
    ]


def test_hepmc3_rejects_columns_of_other_types() -> None:
    table = particles(*PARTICLES)
    texts = pa.array([["1"] * len(PARTICLES)])
    with pytest.raises(UnusableDataset, match="lists of numbers in column px of table particles, not list"):
        list(event_texts(table.set_column(table.column_names.index("px"), "px", texts)))


def test_a_failed_export_keeps_the_existing_file(tmp_path: Path) -> None:
    looping = particles({"particle_id": 1, "parent_id": 2}, {"particle_id": 2, "parent_id": 1}, event_id=5)
    both = pa.concat_tables([particles(*PARTICLES), looping])
    write_dataset(tmp_path, "zee_pu0", [{"particles": both}], events_per_shard=9)
    file = tmp_path / "events.hepmc"
    file.write_text("before")
    with pytest.raises(UnusableDataset, match="event 5"):
        export(tmp_path, file, "hepmc3")
    assert file.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "events.hepmc"]
    assert export(tmp_path, file, "hepmc3", events=EventRange(4, 5)).events == 1
    assert file.read_bytes().endswith(b"HepMC::Asciiv3-END_EVENT_LISTING\n\n")


def test_an_interrupted_export_is_resumed(tmp_path: Path) -> None:
    every = pa.concat_tables([particles(*PARTICLES, event_id=event) for event in range(10)])
    write_dataset(tmp_path / "of", "zee_pu0", [{"particles": every}], events_per_shard=4)
    file = tmp_path / "events.hepmc"
    shown: list[int] = []

    def progress(done: int, total: int) -> None:
        shown.append(done)
        if len(shown) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(tmp_path / "of", file, "hepmc3", events_per_file=3, progress=progress)
    parts = [tmp_path / f"events-0000{number}-of-00004.hepmc" for number in range(4)]
    assert [part.exists() for part in parts] == [True, True, False, False]
    before = [part.stat().st_ino for part in parts[:2]]
    made = export(tmp_path / "of", file, "hepmc3", events_per_file=3, progress=progress)
    assert (made.events, made.files, made.reused, shown[2:]) == (10, 4, 2, [9, 9, 10])
    assert [part.stat().st_ino for part in parts[:2]] == before
    ids = [re.findall(r"^E (\d+)", part.read_text(), re.M) for part in parts]
    assert ids == [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8"], ["9"]]
    assert all(part.read_bytes().endswith(b"END_EVENT_LISTING\n\n") for part in parts)

    with pytest.raises(Conflict, match="changed since"):
        export(tmp_path / "of", file, "hepmc3", events=EventRange(0, 9), events_per_file=3)
    write_dataset(tmp_path / "of", "zee_pu0", [{"particles": every}], events_per_shard=4)
    with pytest.raises(Conflict, match="changed since"):
        export(tmp_path / "of", file, "hepmc3", events_per_file=3)
    (tmp_path / "events.hepmc.json").unlink()
    assert export(tmp_path / "of", file, "hepmc3", events_per_file=3).reused == 0


def test_export_command(tmp_path: Path, isolated_environment: dict[str, str]) -> None:
    write_dataset(tmp_path, "zee_pu0", [{"particles": particles(*PARTICLES)}], events_per_shard=9)
    command = ("datasets", "export", str(tmp_path), "-o", str(tmp_path / "events.hepmc"), "--json")
    done = run_command((*command, "--format", "hepmc3"), isolated_environment, tmp_path)
    assert json.loads(done.stdout)["events"] == 1, done.stderr
    several = run_command(
        (*command, "--format", "hepmc3", "--events-per-file", "1"), isolated_environment, tmp_path
    )
    assert json.loads(several.stdout)["file"].endswith("events-00000-of-00001.hepmc"), several.stderr
    refused = run_command(command, isolated_environment, tmp_path)
    assert (refused.returncode, "--events" in refused.stderr) == (2, True)
