"""Executor ``dask``: the contract, with a scheduler and workers that are processes of their own, over TLS."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import pytest
import trustme
from tests.plugins.dask_calls import parent_of_parent, wait_for_word
from tests.waiting import eventually, until

from collidium import settings
from collidium.contracts.executor import Limits
from collidium.errors import ConfigurationError, Unavailable
from collidium.settings import Settings
from collidium.testing.conformance import check_executor
from collidium.testing.processes import ending_with_parent, isolated_environment
from collidium_plugins import executor_dask
from collidium_plugins.executor_dask import Dask, collidium_executors

LIMITS: Final = Limits(memory_bytes=512 * 1024**2, seconds=60)


class Cluster:
    """A scheduler and its workers; each process ends with the test run."""

    def __init__(self, directory: Path, authority: trustme.CA) -> None:
        self.directory = directory
        certificate = authority.issue_cert("127.0.0.1")
        self.files = {name: directory / f"{name}.pem" for name in ("ca", "certificate", "key")}
        authority.cert_pem.write_to_path(self.files["ca"])
        certificate.cert_chain_pems[0].write_to_path(self.files["certificate"])
        certificate.private_key_pem.write_to_path(self.files["key"])
        self.address = ""
        self.processes: list[subprocess.Popen[bytes]] = []

    def settings(self, **other: object) -> Settings:
        files = {f"dask_{name}": path for name, path in self.files.items()}
        given = {"executor": "dask", "dask_scheduler": self.address, "scoring_workers": 1, **files, **other}
        return settings.load(data_dir=self.directory, **given)

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        names = {"ca": "--tls-ca-file", "certificate": "--tls-cert", "key": "--tls-key"}
        tls = [word for name, option in names.items() for word in (option, str(self.files[name]))]
        address = ["--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
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

    def _start(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        values = {f"PLATFORM_DASK_{kind.upper()}": str(path) for kind, path in self.files.items()}
        values |= {"PLATFORM_SCORING_WORKERS": "1", "PLATFORM_DATA_DIR": str(self.directory / name)}
        values["PYTHONPATH"] = str(Path(__file__).parents[2])  # of the functions that are called
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
def running(directory: Path, workers: int) -> Iterator[Cluster]:
    cluster = Cluster(directory, trustme.CA())
    try:
        cluster.start_scheduler()
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("dask"), 2) as cluster:
        yield cluster


@asynccontextmanager
async def connected(cluster: Cluster, workers: int, **other: object) -> AsyncIterator[Dask]:
    """The executor, once the workers have come."""
    executor = Dask(cluster.settings(**other))
    try:
        await (await executor._connected()).wait_for_workers(workers)
        yield executor
    finally:
        await executor.close()


@pytest.fixture
async def executor(cluster: Cluster) -> AsyncIterator[Dask]:
    async with connected(cluster, 2) as executor:
        yield executor


async def test_the_executor_conforms(executor: Dask) -> None:
    await check_executor(executor)


async def test_short_calls_stay_on_this_machine(executor: Dask) -> None:
    there = [pid async for pid in executor.map(parent_of_parent, [0], LIMITS)]
    here = [pid async for pid in executor.map(parent_of_parent, [0], LIMITS, local=True)]
    assert here == [os.getpid()]
    assert there != here


async def test_calls_of_a_lost_worker_are_repeated(tmp_path: Path) -> None:
    """And a call that was cancelled leaves no process, though Dask would let it run on."""
    with running(tmp_path, 2) as cluster:
        async with connected(cluster, 2) as executor:
            names = [tmp_path / "first", tmp_path / "second"]
            calls = asyncio.create_task(collect(executor, names))
            await until(lambda: all(name.exists() and name.read_text() for name in names))
            assert len({name.read_text() for name in names}) == 2
            os.killpg(cluster.processes[1].pid, signal.SIGKILL)
            for name in names:
                name.with_suffix(".go").touch()
            assert await calls == [str(name) for name in names]
            assert len(list(tmp_path.glob("*.again"))) == 1
            cancelled = tmp_path / "cancelled"
            hanging = asyncio.create_task(collect(executor, [cancelled]))
            await until(lambda: cancelled.exists() and cancelled.read_text() != "")
            process = int(cancelled.read_text())
            hanging.cancel()
            await until(lambda: not Path(f"/proc/{process}").exists())


async def test_a_lost_scheduler_is_unavailable(tmp_path: Path) -> None:
    with running(tmp_path, 1) as cluster:
        async with connected(cluster, 1, dask_wait_seconds=2) as executor:
            calls = asyncio.create_task(collect(executor, [tmp_path / "one"]))
            await until((tmp_path / "one").exists)
            cluster.processes[0].kill()
            with pytest.raises(Unavailable, match="cannot be reached"):
                await calls
            with pytest.raises(Unavailable, match="cannot be reached") as caught:
                await collect(executor, [tmp_path / "two"])
            assert caught.value.headers["Retry-After"] == "30"


async def test_workers_with_other_code_get_no_calls(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(executor_dask, "same_code", lambda: "collidium-other")
    async with connected(cluster, 2, dask_wait_seconds=1) as executor:
        with pytest.raises(Unavailable, match="no worker of this release"):
            await collect(executor, [tmp_path / "never"])
    assert not (tmp_path / "never").exists()


def test_missing_settings_are_named_together(tmp_path: Path) -> None:
    chosen = settings.load(data_dir=tmp_path, executor="dask", dask_scheduler="tls://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match=r"(?s)DASK_CA .*DASK_CERTIFICATE .*DASK_KEY "):
        collidium_executors(chosen)
    with pytest.raises(ConfigurationError, match="PLATFORM_DASK_SCHEDULER"):
        collidium_executors(settings.load(data_dir=tmp_path, executor="dask"))


async def collect(executor: Dask, names: list[Path]) -> list[str]:
    return [name async for name in executor.map(wait_for_word, [str(name) for name in names], LIMITS)]
