"""What the page of the pipeline says is what the pipeline does."""

from __future__ import annotations

import re
from importlib.metadata import requires

from tests.documents import ROOT

from collidium.physics.constants import SAMPLING
from collidium_plugins import acts_pipeline
from collidium_plugins.acts_pipeline import ACTS, PIPELINE, PYTHIA, collidium_pipelines
from collidium_plugins.acts_pipeline.calorimeter import geometry
from collidium_plugins.acts_pipeline.generation import pileup
from collidium_plugins.acts_pipeline.generation.channels import CHANNELS, REFUSED
from collidium_plugins.jet_finder import FASTJET

PAGE = (ROOT / "docs/acts-pipeline.md").read_text()


def test_the_page_lists_every_channel() -> None:
    rows = {row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \| (.*?) \| ?(.*?) \|", PAGE, re.MULTILINE)}
    wanted = {
        name: (channel.title, "—" if channel.picobarns is None else f"{channel.picobarns:.3g}")
        for name, channel in CHANNELS.items()
    }
    wanted |= {name: (f"refused. {reason}", "—") for name, reason in REFUSED.items()}
    assert {name: rows[name] for name in wanted} == wanted


def test_the_page_lists_every_stage() -> None:
    for stage in PIPELINE.stages:
        assert f"| `{stage.name}` |" in PAGE
        for folder in stage.outputs:
            assert f"`{folder}/`" in PAGE


def test_numbers_of_the_page_are_those_of_the_code() -> None:
    assert f"a pool of {pileup.POOL:,}" in PAGE
    for region in geometry.REGIONS[1:]:
        assert f"| {region.inner:g} to {region.outer:g} |" in PAGE
    for layers in (geometry.ECAL, geometry.HCAL):
        assert f"{layers.number} of {layers.pitch:g}: " in PAGE
        for fraction in (layers.electrons, layers.hadrons):
            assert f"{100 * fraction:.2f}%" in PAGE.replace("\n", " ")
    for factor in SAMPLING:
        assert str(factor) in PAGE


def test_versions_are_those_that_the_extra_installs() -> None:
    wanted = [requirement for requirement in requires("collidium") or [] if "extra == 'sim'" in requirement]
    assert {requirement.split(";")[0].strip() for requirement in wanted} == {
        f"fastjet=={FASTJET}",
        f"pyacts=={ACTS}",
        f"pythia8mc=={PYTHIA}",
    }
    assert PYTHIA in PAGE
    assert ACTS in PAGE
    assert FASTJET in PAGE


def test_the_image_of_the_containerfile_is_that_of_the_stages() -> None:
    containerfile = (ROOT / "plugins/collidium_plugins/acts_pipeline/Containerfile").read_text()
    assert f"-t {acts_pipeline.IMAGE} " in containerfile
    assert {stage.image for stage in PIPELINE.stages} == {acts_pipeline.IMAGE}


def test_the_hook_brings_the_pipeline() -> None:
    assert collidium_pipelines() == [PIPELINE]
