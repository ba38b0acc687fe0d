"""Jobs of this machine with a trivial pipeline: the channel says what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGKILL
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.waiting import until

from collidium import settings
from collidium.contracts.runner import Job
from collidium_runners.local.engine import MARK, LocalRunner, local_runner
from collidium_runners.local.processes import Process, with_variable
from collidium_runners.local.records import Record

PIPELINE = """\
#!/bin/sh
channel=$1 output=$2
case $channel in
    gated) until test -e "$output/go"; do sleep 0.02; done ;;
    fail) echo simulating; echo "no such geometry: odd" >&2; exit 3 ;;
    crash) kill -SEGV $$ ;;
    memory) exec tail /dev/zero ;;
    deaf) trap '' TERM; echo deaf >"$output/told"; while true; do sleep 0.05; done ;;
    family)
        setsid sh -c 'echo $$ >"$0/runaway"; exec sleep 1000' "$output" &
        sleep 1000 & echo $! >"$output/child"
        until test -e "$output/go"; do sleep 0.02; done ;;
    empty) exit 0 ;;
    link) cp -s /etc/passwd "$output/particles.parquet"; exit 0 ;;
    loud) seq 1 4000000; exit 1 ;;
    job_environment) { env; pwd; nice; umask; ulimit -d; ls -l /proc/self/fd; } >"$output/told" ;;
esac
cp "${0%/*}/events.parquet" "$output/particles.parquet"
"""

MakeRunner = Callable[..., LocalRunner]


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """The trivial pipeline's program."""
    program = tmp_path / "pipeline"
    program.write_text(PIPELINE)
    program.chmod(0o755)
    pq.write_table(pa.table({"event_id": [0], "px": [[0.5, 1.5]]}), tmp_path / "events.parquet")
    return program


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Where runners of a test keep their jobs."""
    return tmp_path / "data" / "local-jobs"


@pytest.fixture
def make_runner(pipeline: Path, jobs: Path) -> Iterator[MakeRunner]:
    """Makes runners that share a data directory, as processes do; arguments are settings."""

    def make(**values: object) -> LocalRunner:
        chosen: dict[str, object] = {
            "data_dir": jobs.parent,
            "pipeline_command": f"{pipeline} {{channel}} {{output}}",
        }
        return local_runner(settings.load(**(chosen | values)))

    yield make
    # Whatever a test that failed left.
    for folder in (jobs / "processes").glob("*"):
        for process in with_variable(MARK, folder.name):
            process.signal(SIGKILL)


@pytest.fixture
def release(jobs: Path) -> Callable[[str], None]:
    """Lets a job of the channel ``gated`` or ``family`` go on."""
    return lambda handle: (jobs / "output" / handle / "0" / "go").touch()


@pytest.fixture
def record(jobs: Path) -> Callable[[str], Record]:
    """What engine and shepherd wrote down of a job."""
    return lambda handle: Record(jobs / "processes" / f"collidium-{handle}")


@pytest.fixture
def order() -> Callable[..., Job]:
    """Makes jobs of one event."""

    def make(channel: str = "single_muon") -> Job:
        return Job(uuid4().hex, channel, events=1, pileup=0, seed=42, node_seconds=60)

    return make


async def family(output: Path) -> list[Process]:
    """A child of the pipeline, and one that made itself a session of its own."""
    files = [output / "child", output / "runaway"]
    await until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    found = [Process.of(int(file.read_text())) for file in files]
    return [process for process in found if process is not None and process.is_alive]
