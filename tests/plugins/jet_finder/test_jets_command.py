"""``collidium jets``: the table is added whole, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.plugins.jet_finder.events import Cell, Particle, calo_hits, particles

from collidium import datasets
from collidium.datasets.writing import write_dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Conflict, UnusableDataset
from collidium.testing.server import run_command
from collidium_plugins.jet_finder.table import add_jets

CELLS = calo_hits([Cell(30, 0, 0)], [], [Cell(40, 0, 0), Cell(50, 0, 2)])
PARTICLES = particles([Particle(511, 20, 0, 0)], [], [Particle(421, 20, 0, 2)])


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Three events in two shards, as a pipeline writes them."""
    write_dataset(tmp_path, "zee_pu0", [{"calo_hits": CELLS, "particles": PARTICLES}], events_per_shard=2)
    return tmp_path


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_the_command_adds_the_table(dataset: Path, isolated_environment: dict[str, str]) -> None:
    done = run_command(("jets", str(dataset), "--json"), isolated_environment, dataset)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "path": "data/zee_pu0_jets",
        "events": 3,
        "jets": 3,
        "flavours": {"b": 1, "c": 1, "light": 1},
    }
    assert [path for path in files(dataset) if "jets" in path] == [
        "data/zee_pu0_jets",
        "data/zee_pu0_jets/train-00000-of-00002.parquet",
        "data/zee_pu0_jets/train-00001-of-00002.parquet",
    ]
    loaded = datasets.load(dataset, "zee_pu0", "jets")
    assert isinstance(loaded, pa.Table)
    assert [[round(pt, 3) for pt in pts] for pts in loaded.column("pt").to_pylist()] == [[30], [], [50, 40]]
    assert loaded.column("flavour").to_pylist() == [[5], [], [4, 0]]


def test_a_table_that_is_there_is_left_alone(dataset: Path) -> None:
    add_jets(dataset, None)
    before = files(dataset)
    with pytest.raises(Conflict, match="already has a table jets"):
        add_jets(dataset, "zee_pu0")
    assert files(dataset) == before


def test_files_in_a_directory_get_one_next_to_them(tmp_path: Path) -> None:
    pq.write_table(CELLS, tmp_path / "calo_hits.parquet")
    added = add_jets(tmp_path, None, flavours=False)
    assert (added.path, added.jets, added.flavours) == ("jets.parquet", 3, None)
    assert files(tmp_path) == ["calo_hits.parquet", "jets.parquet"]
    table = pq.read_table(tmp_path / "jets.parquet")
    assert table.column("flavour").to_pylist() == [None, None, None]


def test_no_flavours_are_invented(tmp_path: Path) -> None:
    """Particles without any b or c hadron are those of a dataset that lists what reached the detector."""
    stable = particles([Particle(211, 20, 0, 0)], [], [])
    write_dataset(tmp_path, "zee_pu0", [{"calo_hits": CELLS, "particles": stable}], events_per_shard=2)
    before = files(tmp_path)
    with pytest.raises(UnusableDataset, match="has no b or c hadron in any jet"):
        add_jets(tmp_path, None)
    assert files(tmp_path) == before


def test_the_five_real_events_have_no_jet_flavours() -> None:
    before = files(EVENTS_DIRECTORY)
    with pytest.raises(UnusableDataset):
        add_jets(EVENTS_DIRECTORY, None)
    assert files(EVENTS_DIRECTORY) == before


def test_tables_of_different_events_are_refused(tmp_path: Path) -> None:
    pq.write_table(CELLS, tmp_path / "calo_hits.parquet")
    pq.write_table(PARTICLES.slice(1), tmp_path / "particles.parquet")
    with pytest.raises(UnusableDataset, match="particles and calo_hits have different events"):
        add_jets(tmp_path, None)


def test_what_a_killed_run_left_is_removed(dataset: Path) -> None:
    left = dataset / ".jets/held-1.scratch"
    left.mkdir(parents=True)
    (dataset / ".jets/held-1.part").touch()
    (left / "train-00000.partial").touch()
    add_jets(dataset, None)
    assert not (dataset / ".jets").exists()
