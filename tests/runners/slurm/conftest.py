"""A Slurm of the tests' own, with a trivial pipeline: the channel says what it does."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from tests.needs import Needs
from tests.runners.slurm.cluster import SlurmCluster

from collidium import order as orders
from collidium import settings
from collidium.contracts.runner import Job
from collidium_runners.slurm import SlurmRunner, collidium_runners

PIPELINE = """\
import hashlib, os, pathlib, sys, time
channel, events, first_event, seed, output, gate = sys.argv[1:]
if channel == "environment":
    print(*os.environ)
if channel == "reporting":
    done = '{"stage": 1, "stages": 2, "title": "simulation", "fraction": 1.0}'
    pathlib.Path(os.environ["COLLIDIUM_PROGRESS_FILE"]).write_text(done)
waits = channel in {"gated", "gated_fail", "reporting"}
waits = waits or (channel in {"fail_waiting", "gated_rest", "wrong_gated_rest"} and first_event != "0")
if waits:
    # Bounded: a job outlives a test run that is killed.
    until = time.monotonic() + 120
    while not pathlib.Path(gate).exists() and time.monotonic() < until:
        time.sleep(0.05)
if channel == "gated_fail" or (channel.startswith("fail") and first_event == "0"):
    failed = pathlib.Path(f"{gate}.failed")
    if channel != "fail_once" or not failed.exists():
        failed.touch()
        sys.exit(3)
import pyarrow as pa, pyarrow.parquet as pq
ids = range(int(first_event), int(first_event) + int(events))
digests = [list(hashlib.sha256(f"{seed}:{event}".encode()).digest()) for event in ids]
shift = 100 * channel.startswith("wrong")
table = pa.table({"event_id": pa.array([event + shift for event in ids], pa.uint32()), "x": digests})
pq.write_table(table, f"{output}/particles.parquet")
"""

MakeRunner = Callable[..., SlurmRunner]
Order = Callable[..., Job]


@pytest.fixture(scope="session")
def slurm_cluster(needs: Needs) -> Iterator[SlurmCluster]:
    """A throwaway Slurm."""
    needs("slurm")
    with SlurmCluster() as cluster:
        yield cluster


@pytest.fixture(params=["rest", "commands"])
def backend(request: pytest.FixtureRequest) -> str:
    """The way into the cluster."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def door_settings(slurm_cluster: SlurmCluster, tmp_path: Path) -> Callable[[str], dict[str, object]]:
    """Settings of a backend."""

    def of(backend: str) -> dict[str, object]:
        if backend == "commands":
            return {"slurm_configuration": slurm_cluster.environment["SLURM_CONF"]}
        token = tmp_path / "token"
        token.write_text(slurm_cluster.token())
        return {
            "slurm_url": slurm_cluster.url,
            "slurm_token_file": token,
            "slurm_user": slurm_cluster.user,
        }

    return of


@pytest.fixture
def job_settings(tmp_path: Path) -> dict[str, object]:
    """What jobs run, and how they are cut."""
    pipeline = tmp_path / "pipeline.py"
    pipeline.write_text(PIPELINE)
    places = "{channel} {events} {first_event} {seed} {output}"
    return {
        "pipeline_command": f"{sys.executable} {pipeline} {places} {tmp_path / 'gate'}",
        "slurm_cpus_per_part": 1,
        "slurm_events_per_part": 3,
    }


@pytest.fixture
async def make_runner(
    job_settings: dict[str, object], door_settings: Callable[[str], dict[str, object]], tmp_path: Path
) -> AsyncIterator[MakeRunner]:
    """Makes runners that share a folder, as processes do; arguments are settings."""
    async with AsyncExitStack() as runners:

        def make(backend: str = "commands", **values: object) -> SlurmRunner:
            chosen = {"data_dir": tmp_path / "data"} | job_settings | door_settings(backend)
            (runner,) = collidium_runners(settings.load(**(chosen | values)))
            assert isinstance(runner, SlurmRunner)
            runners.push_async_callback(runner.close)
            return runner

        yield make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the folders of requests are."""
    return tmp_path / "data" / "slurm"


@pytest.fixture
def open_gate(tmp_path: Path) -> Callable[[], None]:
    """Lets jobs of the channels ``gated``, ``gated_fail`` and ``reporting`` go on."""
    return (tmp_path / "gate").touch


@pytest.fixture
def order() -> Order:
    """Makes jobs."""

    def make(channel: str = "single_muon", events: int = 1) -> Job:
        return Job(uuid4().hex, orders.Order(channel, events, 0), node_seconds=60)

    return make
