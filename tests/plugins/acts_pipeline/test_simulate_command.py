"""``collidium simulate`` with the built-in pipeline: what a newcomer types, and what a runner does."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from collidium import plugins, settings
from collidium.datasets.reading.dataset import Dataset
from collidium.platform import pipeline_of_command
from collidium.testing.server import run_command
from collidium_plugins.acts_pipeline import PIPELINE

pytest.importorskip("acts")
pytest.importorskip("fastjet")
pytest.importorskip("pythia8mc")

MUONS = ("simulate", "--channel", "single_muon", "--pileup", "0", "--runtime", "none", "--json")
TABLES = ("calo_hits", "jets", "measurements", "particles", "tracker_hits", "tracks")


def test_an_event_is_the_same_alone_and_among_others(
    tmp_path: Path, isolated_environment: dict[str, str]
) -> None:
    """All at once for a newcomer, and the last alone as a runner orders it: the same rows."""

    def made(*arguments: str) -> dict[str, list[str]]:
        done = run_command((*MUONS, *arguments), isolated_environment, tmp_path)
        assert done.returncode == 0, done.stderr
        tables: dict[str, list[str]] = json.loads(done.stdout)["tables"]
        return tables

    assert sorted(made("--events", "3", "--processes", "1")) == list(TABLES)
    whole = tmp_path / "single_muon_pu0"
    assert Dataset(whole).configs() == {"single_muon_pu0": TABLES}
    assert "| pipeline | acts, version " in (whole / "README.md").read_text()
    part = made("--events", "1", "--first-event", "2", "--processes", "1", "--flat", "--output", "part")
    for table in TABLES:
        (file,) = part[table]
        rows = pq.read_table(whole / "data" / f"single_muon_pu0_{table}").slice(2)
        assert pq.read_table(tmp_path / "part" / file).equals(rows), table


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
