"""``collidium simulate`` with the built-in pipeline: what a newcomer types, and what a runner does."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from collidium import plugins, settings
from collidium.datasets.reading.dataset import Dataset
from collidium.platform import pipeline_of_command
from collidium.testing.server import run_command
from collidium_plugins.acts_pipeline import PIPELINE

MUONS = ("simulate", "--channel", "single_muon", "--pileup", "0", "--runtime", "none", "--json")
TABLES = ("calo_hits", "jets", "measurements", "particles", "tracker_hits", "tracks")


def test_a_newcomer_gets_a_dataset(tmp_path: Path, isolated_environment: dict[str, str]) -> None:
    """That events are the same in other runs is shown by the tests of the stages."""
    order = ("--events", "3", "--first-event", "2", "--processes", "1")
    done = run_command((*MUONS, *order), isolated_environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(done.stdout)["tables"]) == list(TABLES)
    dataset = tmp_path / "single_muon_pu0"
    assert Dataset(dataset).configs() == {"single_muon_pu0": TABLES}
    assert "| pipeline | acts, version " in (dataset / "README.md").read_text()
    for table in TABLES:
        rows = pq.read_table(dataset / "data" / f"single_muon_pu0_{table}")
        assert rows.column("event_id").to_pylist() == [2, 3, 4], table


def test_a_server_takes_orders_for_the_pipeline_of_its_command(tmp_path: Path) -> None:
    defaults = settings.load(data_dir=tmp_path)
    loaded = plugins.load()
    assert pipeline_of_command(defaults, loaded) == PIPELINE
    fixed = defaults.pipeline_command.replace("--vary {vary} ", "")
    for command, name, variations in (
        (fixed, "acts", ()),
        (defaults.pipeline_command.replace("acts", "odd"), "odd", ()),
        ("simulate.sh {output}", None, ()),
        ("simulate.sh '", None, ()),
    ):
        found = pipeline_of_command(settings.load(data_dir=tmp_path, pipeline_command=command), loaded)
        assert (found and found.name, found.variations if found else ()) == (name, variations)
