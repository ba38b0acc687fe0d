"""Containers of a podman that is the tests' own, with a trivial pipeline: the channel says what it does."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.podman import Podman

from collidium import settings
from collidium.contracts.runner import Job
from collidium_runners.container import ContainerRunner, container_runner

PIPELINE = b"""\
#!/bin/sh
channel=$1 output=$2
case $channel in
    gated) until test -e "$output/go"; do sleep 0.05; done ;;
    fail) echo simulating; echo "no such geometry: odd" >&2; exit 3 ;;
    memory) exec tail /dev/zero ;;
    deaf) trap '' TERM; echo deaf; while true; do sleep 0.1; done ;;
    empty) exit 0 ;;
    link) cp -s /etc/passwd "$output/particles.parquet"; exit 0 ;;
    job_environment) { env; ls /sys/class/net; cat /proc/self/status; touch /here; } >"$output/told" 2>&1 ;;
esac
cp /events.parquet "$output/particles.parquet"
"""

MakeRunner = Callable[..., ContainerRunner]
MakeImage = Callable[[Podman], str]


@pytest.fixture(scope="session")
def make_image() -> MakeImage:
    """Makes the image of the trivial pipeline in a podman; returns its name."""
    table = io.BytesIO()
    pq.write_table(pa.table({"event_id": [0], "px": [[0.5, 1.5]]}), table)
    files = {"bin/pipeline": PIPELINE, "events.parquet": table.getvalue()}
    return lambda podman: podman.make_image("pipeline", files)


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    """A podman that every process of the module's tests talks to."""
    with Podman() as podman, pytest.MonkeyPatch.context() as patch:
        for name, value in podman.environment.items():
            patch.setenv(name, value)
        yield podman


@pytest.fixture(scope="module")
def image(podman: Podman, make_image: MakeImage) -> str:
    return make_image(podman)


@pytest.fixture
def make_runner(image: str, tmp_path: Path) -> MakeRunner:
    """Makes runners that share a data directory, as processes do; arguments are settings."""

    def make(**values: object) -> ContainerRunner:
        chosen: dict[str, object] = {
            "data_dir": tmp_path / "data",
            "container_runtime": "podman",
            "container_image": image,
            "pipeline_command": "pipeline {channel} {output}",
        }
        return container_runner(settings.load(**(chosen | values)))

    return make


@pytest.fixture
def release(tmp_path: Path) -> Callable[[str], None]:
    """Lets a job of the channel ``gated`` go on."""

    def let_go(handle: str) -> None:
        (tmp_path / "data" / "container-jobs" / "output" / handle / "0" / "go").touch()

    return let_go


@pytest.fixture
def order() -> Callable[..., Job]:
    """Makes jobs of one event."""

    def make(channel: str = "single_muon") -> Job:
        return Job(uuid4().hex, channel, events=1, pileup=0, seed=42, node_seconds=60)

    return make
