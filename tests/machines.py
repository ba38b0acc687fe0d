"""A service of several machines on loopback: processes that share a database and a bucket, and no file.

It runs what an operator runs: PostgreSQL, SeaweedFS, Dask over TLS, two servers, a worker, and nginx with
the file of ``deploy/``. Jobs use the runner ``local``, since ``mock`` publishes nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import trustme
from tests.dask_cluster import Cluster
from tests.hub import HubServer
from tests.ports import free_ports
from tests.proxies import nginx
from tests.s3 import USER, S3Server, s3_variables
from tests.waiting import eventually

from collidium.testing.databases import PostgresDatabases
from collidium.testing.postgres import PostgresServer
from collidium.testing.processes import wait_until
from collidium.testing.server import ServerProcess, start_process

#: What killing in turn goes through. A scheduler takes its workers with it, which systemd starts again.
PARTS: Final = ("database", "store", "scheduler", "worker 0", "worker 1", "server 0", "server 1", "follower")


def write_pipeline(directory: Path) -> Path:
    """Write a program that makes one event, in a second."""
    pq.write_table(pa.table({"event_id": pa.array([0], pa.uint32()), "px": [[0.5]]}), directory / "event")
    program = directory / "pipeline"
    program.write_text(f"#!/bin/sh\nsleep 1\nexec cp {directory}/event $1/particles.parquet\n")
    program.chmod(0o755)
    return program


class Follower(ServerProcess):
    """``collidium worker``, with settings as a server's; its jobs go on when it is killed."""

    def start(self, *options: str, port: int = 0) -> None:
        with self._output.open("wb") as output, self._errors.open("ab") as errors:
            command = [*self.program, "worker", *options]
            self._process = start_process(command, self.environment, self.directory, output, errors)
        wait_until(lambda: "Following" in self._output.read_text(), self._process, 60, self.log)


class Machines:
    """All of them; parts are killed and started again by name."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        port, *ports = free_ports(3)
        self.url = f"http://127.0.0.1:{port}"
        self._ports = dict(enumerate(ports))
        self.hub = HubServer(directory / "hub", callback=f"{self.url}/web/callback")
        stack.callback(self.hub.end, signal.SIGKILL)
        self.postgres = stack.enter_context(PostgresServer(durable=True))
        self.database = stack.enter_context(PostgresDatabases(self.postgres).migrated())
        self.store = S3Server(directory / "store")
        stack.callback(lambda: self.store.kill())
        bucket = s3_variables(self.store.url, USER)
        (directory / "cluster").mkdir()
        self.cluster = Cluster(directory / "cluster", trustme.CA(), bucket)
        stack.callback(self._kill_cluster)
        self._scheduler = self.cluster.start_scheduler()
        self._workers = [self.cluster.start_worker() for _ in range(2)]
        variables = {
            **bucket,
            **self.cluster.variables(),
            "PLATFORM_HUB_URL": self.hub.url,
            "PLATFORM_PUBLIC_URL": self.url,
            "PLATFORM_TRUSTED_PROXIES": "1",
            "PLATFORM_WORKERS": "2",
            "PLATFORM_FOLLOW_REQUESTS": "false",
            "PLATFORM_STOP_DELAY_SECONDS": "3",
            "PLATFORM_RUN_MODE": "real",
            "PLATFORM_RUNNER": "local",
            "PLATFORM_PIPELINE_COMMAND": f"{write_pipeline(directory)} {{output}}",
            "PLATFORM_POLL_SECONDS": "0.2",
            "PLATFORM_LEASE_SECONDS": "5",
            "PLATFORM_BURST_REQUESTS": "1000",
            "PLATFORM_UNFINISHED_REQUESTS": "1000",
            "PLATFORM_SUBMISSIONS_PER_DAY": "1000",
            # What a part that is away held is sent again, to fewer processes.
            "PLATFORM_EVALUATIONS_IN_FLIGHT": "64",
        }
        #: A machine that serves nothing, for an operator's commands.
        self.desk = ServerProcess(directory / "desk", self.database, variables)
        self.servers = [ServerProcess(directory / f"server-{n}", self.database, variables) for n in (0, 1)]
        self.follower = Follower(directory / "follower", self.database, variables)
        for number, server in enumerate(self.servers):
            stack.callback(server.close)
            server.start(port=self._ports[number])
        stack.callback(self.follower.close)
        self.follower.start()
        stack.enter_context(nginx(directory / "proxy", port, ports))

    def client(self, name: str) -> httpx.Client:
        """Calls as an account, through the proxy."""
        headers = {"Authorization": f"Bearer {self.hub.token(name)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, trust_env=False)

    def kill(self, part: str) -> None:
        """SIGKILL to a part of :data:`PARTS`; it has ended on return."""
        number = int(part[-1]) if part[-1].isdigit() else 0
        match part.split()[0]:
            case "database":
                self.postgres.kill()
            case "store":
                self.store.kill()
            case "scheduler":
                kill_group(self._scheduler)
                for worker in self._workers:
                    worker.wait(60)
            case "worker":
                kill_group(self._workers[number])
            case "server":
                self.servers[number].kill()
            case "follower":
                self.follower.kill()

    def start(self, part: str) -> None:
        """Start it again, at its address; it is ready on return."""
        number = int(part[-1]) if part[-1].isdigit() else 0
        match part.split()[0]:
            case "database":
                self.postgres.start()
            case "store":
                self.store.start()
            case "scheduler":
                self._scheduler = self.cluster.start_scheduler()
                self._workers = [self.cluster.start_worker() for _ in self._workers]
                eventually(self.cluster.has_worker)
            case "worker":
                self._workers[number] = self.cluster.start_worker()
                eventually(self.cluster.has_worker)
            case "server":
                self.servers[number].start(port=self._ports[number])
            case "follower":
                self.follower.start()

    def _kill_cluster(self) -> None:
        for process in self.cluster.processes:
            if process.poll() is None:
                kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def started(directory: Path) -> Iterator[Machines]:
    """All machines, until the context ends."""
    with ExitStack() as stack:
        yield Machines(directory, stack)
