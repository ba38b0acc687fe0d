"""Workers of Dask that are jobs: the program of ``deploy/slurm``, with dask-jobqueue and a real Slurm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import trustme
from tests.dask_cluster import Cluster
from tests.plugins.dask_calls import parent_of_parent
from tests.ports import free_ports
from tests.runners.slurm.cluster import SlurmCluster
from tests.waiting import until

from collidium.contracts.executor import Limits
from collidium.testing.processes import ending_with_parent
from collidium_plugins.executor_dask import Dask

ROOT: Final = Path(__file__).parents[3]
LIMITS: Final = Limits(memory_bytes=512 * 1024**2, seconds=60)


@pytest.fixture
def cluster(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[Cluster]:
    """The program, with a cluster's certificates."""
    cluster = Cluster(tmp_path, trustme.CA(), {})
    cluster.address = f"tls://127.0.0.1:{free_ports(1)[0]}"
    slurm = slurm_cluster.environment
    environment = {
        **slurm,
        **cluster.variables(),
        "PATH": f"{Path(sys.executable).parent}:{slurm['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "TMPDIR": str(tmp_path),
        "DASK_JOBQUEUE__SLURM__CORES": "1",
        "DASK_JOBQUEUE__SLURM__MEMORY": "100MB",
        "DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "1s",
    }
    command = ending_with_parent([sys.executable, str(ROOT / "deploy/slurm/workers.py"), "1", "2"])
    cluster.processes.append(subprocess.Popen(command, env=environment, cwd=tmp_path))
    yield cluster
    cluster.close()


async def test_jobs_score_while_their_scheduler_lives(cluster: Cluster, slurm_cluster: SlurmCluster) -> None:
    """A job that is lost is replaced, and none is left."""
    executor = Dask(cluster.settings(dask_wait_seconds=120))
    try:
        first = await where(executor)
        (job,) = jobs(slurm_cluster)
        slurm_cluster.command("scancel", "--signal=KILL", "--full", job)
        await until(lambda: job not in jobs(slurm_cluster))
        assert await where(executor) != first
    finally:
        await executor.close()
    (program,) = cluster.processes
    program.terminate()
    await until(lambda: not jobs(slurm_cluster))


async def where(executor: Dask) -> int:
    """The process of the worker that a call was run by."""
    (found,) = [pid async for pid in executor.map(parent_of_parent, [0], LIMITS)]
    return found


def jobs(cluster: SlurmCluster) -> list[str]:
    return cluster.command("squeue", "--noheader", "--format=%i").split()
