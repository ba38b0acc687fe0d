"""Simulations in a directory of the test, with the stages of ``stages.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.core.pipelines import stages
from tests.podman import Podman

from collidium.contracts.pipeline import Pipeline
from collidium.order import Order
from collidium.pipelines.simulating import RunOptions, Simulated, simulate
from collidium.pipelines.stages import Progress


@dataclass
class Machine:
    """Simulates in one directory with one pipeline, and keeps what was reported."""

    directory: Path
    pipeline: Pipeline
    runtime: str
    progress: list[Progress] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def simulate(
        self,
        channel: str = "ttbar",
        *,
        events: int = 4,
        seed: int = 42,
        first_event: int = 0,
        watch: Callable[[Progress], None] | None = None,
        **options: object,
    ) -> Simulated:
        def note(progress: Progress) -> None:
            self.progress.append(progress)
            if watch:
                watch(progress)

        self.progress.clear()
        return simulate(
            Order(channel, events, 0, seed),
            self.directory,
            RunOptions(**{"pipeline": self.pipeline.name, "runtime": self.runtime, **options}),
            get={self.pipeline.name: self.pipeline}.__getitem__,
            report=note,
            note=self.notes.append,
            first_event=first_event,
        )

    @property
    def ended(self) -> list[tuple[str, str]]:
        """The stages in order, each with how it ended."""
        return [(step.stage.name, step.state) for step in self.progress if step.state != "running"]

    @property
    def work(self) -> Path:
        return self.directory / ".collidium" / "work"

    def log(self, stage: str) -> str:
        return (self.directory / "logs" / f"{stage}.log").read_text()

    def mend(self) -> None:
        """From now on no stage does anything odd."""
        (self.work / "mended").touch()


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    """Stages run on this machine."""
    return Machine(tmp_path / "out", stages.native(stages.write_script(tmp_path / "scripts")), "none")


@pytest.fixture
def in_containers(tmp_path: Path, podman: Podman, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Stages run in containers."""
    for name, value in podman.environment.items():
        monkeypatch.setenv(name, value)
    return Machine(tmp_path / "out", stages.contained(), "podman")


@pytest.fixture(params=["none", "podman"])
def machine(request: pytest.FixtureRequest) -> Machine:
    """Both, one after the other."""
    fixture: Machine = request.getfixturevalue("here" if request.param == "none" else "in_containers")
    return fixture
