"""A scheduler of Dask whose workers are jobs of Slurm, by dask-jobqueue: more of them while calls wait.

    python workers.py 1 20    at least one job, at most 20

Cores, memory, partition, account and time of a job are settings of dask-jobqueue, in
``~/.config/dask/jobqueue.yaml`` or as ``DASK_JOBQUEUE__SLURM__CORES`` and so on. All others are Collidium's,
as of a server; jobs inherit them.
"""

import signal
import sys
from typing import Any
from urllib.parse import urlsplit

from dask_jobqueue.slurm import SLURMCluster, SLURMJob
from distributed import Security

from collidium import settings


class WorkerJob(SLURMJob):
    """A job that runs a worker of Collidium."""

    def __init__(self, scheduler: str | None = None, name: str | None = None, **options: Any) -> None:
        super().__init__(scheduler, name, **options)
        self._command_template = (
            f"PLATFORM_DASK_WORKER_NAME={name} PLATFORM_SCORING_WORKERS=$SLURM_CPUS_PER_TASK "
            f'exec collidium worker --dask {scheduler} --data-dir "${{TMPDIR:-/tmp}}"'
        )


fewest, most = map(int, sys.argv[1:])
chosen = settings.load(executor="dask")
address = urlsplit(chosen.dask_scheduler)
files = {"cert": str(chosen.dask_certificate), "key": str(chosen.dask_key)}
security = Security(
    require_encryption=True,
    tls_ca_file=str(chosen.dask_ca),
    **{
        f"tls_{role}_{name}": file
        for role in ("client", "scheduler", "worker")
        for name, file in files.items()
    },
)
scheduler = {"host": address.hostname, "port": address.port, "dashboard": False}
with SLURMCluster(job_cls=WorkerJob, processes=1, security=security, scheduler_options=scheduler) as cluster:
    cluster.adapt(minimum_jobs=fewest, maximum_jobs=most)
    signal.pause()  # workers end with their scheduler
