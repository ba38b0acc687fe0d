"""Which pipeline simulates, and where: as asked for, else as the machine allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.core.pipelines import stages
from tests.podman import Podman

from collidium.contracts.pipeline import Pipeline
from collidium.order import Order
from collidium.pipelines.choice import Choice, choose
from collidium.pipelines.production import CannotSimulate, StageFailed
from collidium.pipelines.simulating import RunOptions, simulate
from collidium.runtime.containers import Engine

TTBAR = Order("ttbar", 4, 0)
ABSENT = "localhost/absent:1"


class Machine:
    """Pipelines as they are installed, and what was noted while one was chosen."""

    def __init__(self, script: Path) -> None:
        self.acts = replace(stages.native(script, "acts"), extra="sim")
        self.odd = stages.contained(name="odd")
        self.notes: list[str] = []

    @property
    def installed(self) -> Mapping[str, Pipeline]:
        return {"acts": self.acts, "odd": self.odd}

    def choose(
        self, pipeline: str = "auto", runtime: str = "auto", order: Order = TTBAR, started: str | None = None
    ) -> Choice:
        return choose(
            pipeline, runtime, order, self.installed.__getitem__, self.notes.append, started=started
        )

    def chosen(self, *asked: str) -> tuple[str, str]:
        choice = self.choose(*asked)
        return choice.pipeline.name, choice.runtime.name


@pytest.fixture
def machine(tmp_path: Path, podman: Podman, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Podman answers; a docker client may be there, with no engine behind it."""
    for name, value in podman.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    return Machine(stages.write_script(tmp_path / "scripts"))


@pytest.fixture
def bare(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """No engine is on the path."""
    monkeypatch.setenv("PATH", "/nowhere")
    return machine


def test_production_where_an_engine_has_its_image(machine: Machine) -> None:
    assert machine.chosen() == ("odd", "podman")
    assert machine.notes == []
    assert machine.chosen("auto", "podman") == ("odd", "podman")
    assert machine.chosen("auto", "none") == ("acts", "none")


def test_without_the_image_the_built_in_pipeline_runs(machine: Machine) -> None:
    machine.odd = stages.contained(ABSENT, "odd")
    assert machine.chosen() == ("acts", "none")
    assert "podman has no image of pipeline odd (--pipeline odd fetches it)" in machine.notes[0]
    with pytest.raises(CannotSimulate, match="--pipeline odd fetches it"):
        machine.choose(runtime="podman")


def test_without_an_engine_the_built_in_pipeline_and_why(bare: Machine) -> None:
    assert bare.chosen() == ("acts", "none")
    assert "No container engine answers" in bare.notes[0]
    assert "docker is not installed; podman is not installed" in bare.notes[0]


def test_a_client_without_an_engine_is_none(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client = tmp_path / "bin" / "docker"
    client.parent.mkdir()
    client.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(client.parent), prepend=":")
    assert machine.chosen() == ("odd", "podman")
    with pytest.raises(CannotSimulate, match="docker does not respond: Cannot connect"):
        machine.choose("odd", "docker")


def test_the_built_in_pipeline_takes_channels_that_odd_lacks(machine: Machine) -> None:
    machine.odd = replace(machine.odd, channels={"ttbar": ""}, refused={"jets": "no cards for it"})
    assert machine.chosen("auto", "auto") == ("odd", "podman")
    for channel in ("zmumu", "jets"):
        assert machine.choose(order=Order(channel, 1, 0)).pipeline.name == "acts"
    assert machine.notes[0].startswith("Pipeline odd does not simulate zmumu. So acts simulates")
    with pytest.raises(CannotSimulate, match="odd does not simulate zmumu"):
        machine.choose(runtime="podman", order=Order("zmumu", 1, 0))


def test_what_is_asked_for_by_name(machine: Machine) -> None:
    assert machine.chosen("acts") == ("acts", "none")
    assert machine.chosen("odd") == ("odd", "podman")
    with pytest.raises(CannotSimulate, match="acts has no image: give --runtime none"):
        machine.choose("acts", "podman")
    with pytest.raises(CannotSimulate, match="odd runs only in containers"):
        machine.choose("odd", "none")


def test_production_without_an_engine(bare: Machine) -> None:
    with pytest.raises(CannotSimulate, match=r"odd needs a container engine .*install docker or podman"):
        bare.choose("odd")


def test_missing_modules_are_reported_with_the_extra(machine: Machine) -> None:
    machine.acts = replace(machine.acts, native=("no_such_module", "json"))
    with pytest.raises(CannotSimulate, match=r"needs no_such_module on .*: pip install 'collidium\[sim\]'"):
        machine.choose("acts")


def test_a_started_run_resumes_without_fetching_images(machine: Machine) -> None:
    assert machine.choose(started="acts").pipeline.name == "acts"
    machine.odd = stages.contained(ABSENT, "odd")
    with pytest.raises(CannotSimulate, match="--pipeline odd fetches it"):
        machine.choose(started="odd")
    assert machine.choose("odd").missing == (ABSENT,)


def simulated(machine: Machine, directory: Path) -> str:
    made = simulate(
        TTBAR,
        directory,
        RunOptions(pipeline="odd"),
        get=machine.installed.__getitem__,
        report=lambda _: None,
        note=machine.notes.append,
    )
    return made.runtime


def test_a_failed_image_fetch_is_reported(machine: Machine, tmp_path: Path) -> None:
    machine.odd = stages.contained(ABSENT, "odd")
    with pytest.raises(StageFailed, match=f"cannot be fetched; try by hand: podman pull {ABSENT}") as caught:
        simulated(machine, tmp_path / "out")
    assert caught.value.errors
    assert not (tmp_path / "out" / ".collidium" / "order.json").exists(), "another pipeline may be tried here"


def test_an_image_is_built_from_the_pipelines_containerfile(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDAH_ISOLATION", "chroot")
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "Containerfile").write_text(f"FROM {stages.IMAGE}\nLABEL built=here\n")
    image = "localhost/built:1"
    machine.odd = replace(stages.contained(image, "odd"), containerfile=str(tmp_path / "recipe"))
    assert not Engine.probe("podman").has_image(image)
    assert simulated(machine, tmp_path / "out") == "podman"
    assert machine.notes[0].startswith(f"Fetching the image {image}, once")
    assert Engine.probe("podman").has_image(image)
