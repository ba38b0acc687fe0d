"""A Dask cluster on loopback, over TLS: a scheduler and workers that are processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import trustme
from tests.waiting import eventually

from collidium import settings
from collidium.settings import Settings
from collidium.testing.processes import ending_with_parent, isolated_environment


class Cluster:
    """A scheduler and its workers; each process ends with the test run."""

    def __init__(self, directory: Path, authority: trustme.CA, env: Mapping[str, str]) -> None:
        self.directory = directory
        self._env = env
        certificate = authority.issue_cert("127.0.0.1")
        self.files = {name: directory / f"{name}.pem" for name in ("ca", "certificate", "key")}
        authority.cert_pem.write_to_path(self.files["ca"])
        certificate.cert_chain_pems[0].write_to_path(self.files["certificate"])
        certificate.private_key_pem.write_to_path(self.files["key"])
        self.address = ""
        self.processes: list[subprocess.Popen[bytes]] = []

    def variables(self) -> dict[str, str]:
        """What a server or worker needs to be part of it."""
        files = {f"PLATFORM_DASK_{kind.upper()}": str(path) for kind, path in self.files.items()}
        return {"PLATFORM_EXECUTOR": "dask", "PLATFORM_DASK_SCHEDULER": self.address, **files}

    def settings(self, **other: object) -> Settings:
        files = {f"dask_{name}": path for name, path in self.files.items()}
        given = {"executor": "dask", "dask_scheduler": self.address, "scoring_workers": 1, **files, **other}
        return settings.load(data_dir=self.directory, **given)

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        """Start it at a free port, or again at the one that it had."""
        names = {"ca": "--tls-ca-file", "certificate": "--tls-cert", "key": "--tls-key"}
        tls = [word for name, option in names.items() for word in (option, str(self.files[name]))]
        port = str(urlsplit(self.address).port or 0)
        address = ["--protocol", "tls", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
        note = self.directory / "scheduler.json"
        note.unlink(missing_ok=True)
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *address, *tls]
        process = self._start([*command, "--scheduler-file", str(note)], "scheduler")
        log = self.directory / "scheduler.log"
        eventually(lambda: process.poll() is not None or (note.exists() and note.stat().st_size > 0))
        assert process.poll() is None, log.read_text()
        self.address = json.loads(note.read_text())["address"]
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "collidium", "worker", "--dask", self.address]
        return self._start(command, f"worker-{len(self.processes)}")

    def has_worker(self) -> bool:
        """Whether the worker that was started last has come to the scheduler."""
        log = self.directory / f"worker-{len(self.processes) - 1}.log"
        return "Registered to" in log.read_text()

    def _start(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        values = {"PLATFORM_SCORING_WORKERS": "1", "PLATFORM_DATA_DIR": str(self.directory / name)}
        values["PYTHONPATH"] = str(Path(__file__).parents[1])  # of the functions that are called
        values |= {**self.variables(), **self._env}
        with (self.directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                ending_with_parent(command),
                env=isolated_environment(self.directory, values),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self.directory,
            )
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def running(directory: Path, workers: int, env: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """A cluster whose workers have an environment of their own."""
    directory.mkdir(exist_ok=True)
    cluster = Cluster(directory, trustme.CA(), env or {})
    try:
        cluster.start_scheduler()
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        cluster.close()
