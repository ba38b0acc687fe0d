"""Runners of this machine's processes and containers, with a trivial pipeline: the channel says what it does.

A module that is about one of the two overrides ``kind``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.needs import Needs
from tests.podman import Podman
from tests.waiting import until

from collidium import order as orders
from collidium import settings
from collidium.contracts.runner import Job
from collidium_runners.container import container_runner
from collidium_runners.local.engine import MARK, local_runner
from collidium_runners.local.processes import JobProcess, with_variable
from collidium_runners.local.records import FolderRecord
from collidium_runners.spool.jobs import SpooledRunner
from collidium_runners.spool.spool import Spool

PIPELINE = """\
#!/bin/sh
channel=$1 output=$2
case $channel in
    gated) until test -e "$output/go"; do sleep 0.02; done ;;
    reporting)
        echo '{"stage": 2, "stages": 4, "title": "simulation", "fraction": 0.5}' >"$COLLIDIUM_PROGRESS_FILE"
        until test -e "$output/go"; do sleep 0.02; done ;;
    fail) echo simulating; echo "no such geometry: odd" >&2; exit 3 ;;
    crash) kill -SEGV $$ ;;
    memory) exec tail /dev/zero ;;
    deaf) trap '' TERM; echo deaf >"$output/seen"; while true; do sleep 0.05; done ;;
    family)
        setsid sh -c 'echo $$ >"$0/runaway"; exec sleep 1000' "$output" &
        sleep 1000 & echo $! >"$output/child"
        until test -e "$output/go"; do sleep 0.02; done ;;
    empty) exit 0 ;;
    link) cp -s /etc/passwd "$output/particles.parquet"; exit 0 ;;
    loud) seq 1 4000000; exit 1 ;;
    environment_of_process)
        { env; pwd; nice; umask; ulimit -d; ls -l /proc/self/fd; } >"$output/seen" ;;
    environment_of_container)
        { env; ls /sys/class/net; cat /proc/self/status; touch /here; } >"$output/seen" 2>&1 ;;
esac
cp "${0%/*}/events.parquet" "$output/particles.parquet"
"""

MakeRunner = Callable[..., SpooledRunner]
MakeImage = Callable[[Podman], str]
Order = Callable[..., Job]
Release = Callable[[str], None]
RecordOf = Callable[[str], FolderRecord]


def events() -> bytes:
    """The table that the pipeline writes."""
    table = io.BytesIO()
    pq.write_table(pa.table({"event_id": [0], "px": [[0.5, 1.5]]}), table)
    return table.getvalue()


@pytest.fixture(scope="session")
def make_image() -> MakeImage:
    """Makes the image of the trivial pipeline in a podman; returns its name."""
    files = {"bin/pipeline": PIPELINE.encode(), "bin/events.parquet": events()}
    return lambda podman: podman.make_image("pipeline", files)


@pytest.fixture(scope="module")
def podman(needs: Needs) -> Iterator[Podman]:
    """A podman that every process of the module's tests talks to."""
    needs("podman")
    with Podman() as podman, pytest.MonkeyPatch.context() as patch:
        for name, value in podman.environment.items():
            patch.setenv(name, value)
        yield podman


@pytest.fixture(scope="module")
def image(podman: Podman, make_image: MakeImage) -> str:
    return make_image(podman)


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """The trivial pipeline's program."""
    program = tmp_path / "pipeline"
    program.write_text(PIPELINE)
    program.chmod(0o755)
    (tmp_path / "events.parquet").write_bytes(events())
    return program


@pytest.fixture(scope="module", params=["local", "container"])
def kind(request: pytest.FixtureRequest) -> str:
    """The runner."""
    name: str = request.param
    return name


@pytest.fixture
def jobs(kind: str, tmp_path: Path) -> Path:
    """Where runners of a test keep their jobs."""
    return tmp_path / "data" / f"{kind}-jobs"


@pytest.fixture
def chosen(kind: str, jobs: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings that runners of a test have."""
    data = {"data_dir": jobs.parent}
    if kind == "local":
        return data | {"pipeline_command": f"{request.getfixturevalue('pipeline')} {{channel}} {{output}}"}
    return data | {
        "container_runtime": "podman",
        "container_image": request.getfixturevalue("image"),
        "pipeline_command": "pipeline {channel} {output}",
    }


@pytest.fixture
def make_runner(kind: str, chosen: dict[str, Any], jobs: Path) -> Iterator[MakeRunner]:
    """Makes runners that share a data directory, as processes do; arguments are settings."""
    make = local_runner if kind == "local" else container_runner
    yield lambda **values: make(settings.load(**(chosen | values)))
    # Whatever a test that failed left.
    for folder in (jobs / "processes").glob("*"):
        for process in with_variable(MARK, folder.name):
            process.signal(SIGKILL)


@pytest.fixture
def release(jobs: Path) -> Release:
    """Lets a job of the channel ``gated``, ``reporting`` or ``family`` go on."""
    return lambda handle: (jobs / "output" / handle / "0" / "go").touch()


@pytest.fixture
def spool(jobs: Path) -> Spool:
    """What the runners of a test wrote down."""
    return Spool(jobs)


@pytest.fixture
def record(jobs: Path) -> RecordOf:
    """What engine and shepherd of a local job wrote down."""
    return lambda handle: FolderRecord(jobs / "processes" / f"collidium-{handle}")


@pytest.fixture
def order() -> Order:
    """Makes jobs of one event."""

    def make(channel: str = "single_muon") -> Job:
        return Job(uuid4().hex, orders.Order(channel, 1, 0), node_seconds=60)

    return make


async def family(output: Path) -> list[JobProcess]:
    """A child of the pipeline, and one that made itself a session of its own."""
    files = [output / "child", output / "runaway"]
    await until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    found = [JobProcess.of(int(file.read_text())) for file in files]
    return [process for process in found if process is not None and process.is_alive]
