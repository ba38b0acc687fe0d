"""The pipeline of production, as data, and its stages with scripts that play the production's.

The real image is some 15 GB and its scripts are on the network: neither is here.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from collidium import plugins
from collidium.contracts.pipeline import TABLES
from collidium.order import Order, UnknownOrder
from collidium.pipelines.production import Production, check_channel
from collidium_plugins.odd_pipeline import BASE_IMAGE, IMAGE, PIPELINE, SCRIPTS, stages

FOLDER = Path(stages.__file__).parent
#: Plays every script of the production: writes down how it was called, and leaves what the real one leaves.
PLAYED = """\
import pathlib, sys, yaml
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
runs = pathlib.Path(arguments["--output"])
settings = yaml.safe_load(pathlib.Path(arguments["--config"]).read_text())
name = pathlib.Path(__file__).stem
with (runs.parent / "called").open("a") as called:
    print(name, arguments["--output-subdir"], arguments["--seed"], settings, file=called)
if settings.get("fails"):
    sys.exit(7)
run = runs / arguments["--output-subdir"]
run.mkdir(parents=True, exist_ok=True)
if name == "madgraph_gen":
    left = runs / "all" / "0" / "events.hepmc.gz"
    left.parent.mkdir(parents=True)
    left.write_text("from MadGraph")
if name == "pythia_gen":
    (run / "merged_events.hepmc3").write_text((run / "events.hepmc.gz").read_text())
if name == "digi_and_reco" and settings["output_parquet_arrow"]:
    import pyarrow as pa, pyarrow.parquet as pq
    for table in ("particles", "tracker_hits"):
        (run / table).mkdir()
        for event in (0, 2, 10):
            pq.write_table(pa.table({"x": [1.0], "event_id": [event]}), run / table / f"{event}.parquet")
"""
SETTINGS = {
    "madgraph_init_config.yaml": {"stage": "madgraph_init"},
    "madgraph_generation_config.yaml": {"events": 100, "seed": 1},
    "pythia_config.yaml": {"events": 10, "pileup": 5},
    "simulation_config.yaml": {"events": 10},
    "digitization_config.yaml": {"output_parquet_arrow": True},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The production's scripts and settings, as they lie in the image."""
    place = tmp_path / "workspace"
    for scripts in stages.SCRIPTS.values():
        for script, _ in scripts:
            path = place / "scripts" / script
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(PLAYED)
    settings = place / stages.SETTINGS / "ttbar"
    settings.mkdir(parents=True)
    for name, content in SETTINGS.items():
        (settings / name).write_text(yaml.safe_dump(content))
    return place


def run(stage: str, workspace: Path, *more: str) -> subprocess.CompletedProcess[str]:
    work = workspace.parent / "work"
    work.mkdir(exist_ok=True)
    order = ("--channel", "ttbar", "--events", "4", "--pileup", "0", "--seed", "7")
    words = [sys.executable, stages.__file__, stage, *order, "--first-event", "90", "--work", str(work)]
    return subprocess.run(
        [*words, "--workspace", str(workspace), *more], check=False, capture_output=True, text=True
    )


def test_it_is_installed_with_its_stages_in_order() -> None:
    assert plugins.load().pipelines().get("odd") == PIPELINE
    assert [stage.name for stage in PIPELINE.stages] == list(stages.SCRIPTS)
    left: set[str] = set()
    for stage in PIPELINE.stages:
        assert set(stage.inputs) <= left, "an earlier stage leaves it"
        left |= set(stage.outputs)
        assert stage.image == IMAGE
    assert PIPELINE.stages[-1].outputs == (TABLES,)
    assert PIPELINE.native is None


def test_image_and_scripts_are_pinned() -> None:
    assert PIPELINE.version == SCRIPTS == "pipeline-v0.2.1"
    assert PIPELINE.containerfile == str(FOLDER)
    assert re.fullmatch(r"ghcr\.io/opendatadetector/sw@sha256:[0-9a-f]{64}", BASE_IMAGE)
    recipe = (FOLDER / "Containerfile").read_text()
    assert re.findall(r"^FROM (.*)$", recipe, re.MULTILINE) == [BASE_IMAGE]
    assert f"--branch {SCRIPTS} " in recipe
    assert f"--tag {IMAGE} " in recipe
    assert "COPY stages.py /opt/collidium/stages.py" in recipe


def test_commands_are_those_of_the_stages() -> None:
    production = Production(Order("ttbar", 10, 200, 7), PIPELINE, first_event=90)
    words = production.words(PIPELINE.stages[1], python="python3", work="/simulation", processes=2)
    assert words[:2] == ["bash", "-c"]
    assert words[4] == "simulate"
    options = stages._options([*words[4:]])
    assert (options.channel, options.events, options.pileup, options.seed) == ("ttbar", 10, 200, 7)
    assert (options.first_event, options.work) == (90, Path("/simulation"))


def test_channels_without_scripts_are_rejected_with_a_reason() -> None:
    check_channel(Order("higgs_portal", 1, 0), PIPELINE)
    with pytest.raises(UnknownOrder, match=r"cannot simulate jets: its scripts at pipeline-v0.2.1"):
        check_channel(Order("jets", 1, 0), PIPELINE)


def test_scripts_run_in_order_with_our_order_in_their_settings(workspace: Path) -> None:
    done = run("generate", workspace, "--first-event", "0")
    assert done.returncode == 0, done.stderr
    work = workspace.parent / "work"
    assert (work / "called").read_text().splitlines() == [
        "madgraph_init 0 7 {'stage': 'madgraph_init'}",
        "madgraph_gen 0 7 {'events': 4, 'seed': 7}",
        "pythia_gen 0 7 {'events': 4, 'pileup': 0}",
    ]
    assert (work / "runs/0/merged_events.hepmc3").read_text() == "from MadGraph"


def test_parts_of_an_order_have_other_seeds(workspace: Path) -> None:
    assert run("simulate", workspace).returncode == 0
    seed = stages.part_seed(7, 90)
    assert (workspace.parent / "work" / "called").read_text().split()[:3] == ["ddsim_run", "0", str(seed)]
    seeds = {stages.part_seed(given, first) for given in (7, 8) for first in range(0, 1000, 10)}
    assert len(seeds) == 200
    assert max(seeds) < 2**31


def test_a_script_that_fails_ends_the_stage(workspace: Path) -> None:
    settings = workspace / stages.SETTINGS / "ttbar" / "madgraph_init_config.yaml"
    settings.write_text("fails: true")
    done = run("generate", workspace)
    assert done.returncode == 7
    assert "simulation/madgraph_init.py ended with exit code 7" in done.stderr
    assert len((workspace.parent / "work" / "called").read_text().splitlines()) == 1


def test_tables_are_collected_and_numbered_from_the_first_event(workspace: Path) -> None:
    assert run("reconstruct", workspace).returncode == 0
    tables = workspace.parent / "work" / "tables"
    assert sorted(path.name for path in tables.iterdir()) == ["particles.parquet", "tracker_hits.parquet"]
    events = pq.read_table(tables / "particles.parquet").column("event_id")
    assert (events.type, events.to_pylist()) == (pa.uint32(), [90, 92, 100])


def test_a_reconstruction_without_tables_fails(workspace: Path) -> None:
    (workspace / stages.SETTINGS / "ttbar" / "digitization_config.yaml").unlink()
    (workspace.parent / "work" / "runs").mkdir(parents=True)
    done = run("reconstruct", workspace)
    assert done.returncode == 1
    assert "left no tables" in done.stderr
