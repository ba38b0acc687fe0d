"""Executor ``dask`` with a real scheduler and workers over TLS."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Final

import pytest
from tests.counts import LONG
from tests.dask_cluster import Cluster, running
from tests.killing import Killer, workers
from tests.plugins.dask_calls import parent_of_parent, wait_for_word, wait_with_file
from tests.waiting import eventually, until

from collidium import plugins, settings
from collidium.contracts.executor import OWN_FAULTS, Limits, StoredFile, WorkerDied
from collidium.contracts.storage import StorageUnavailable
from collidium.errors import ConfigurationError, Unavailable
from collidium.server.doctor import HealthCheck, examine
from collidium.testing.conformance import check_executor
from collidium.testing.server import ServerProcess
from collidium_plugins import executor_dask
from collidium_plugins.executor_dask import Dask, collidium_executors
from collidium_plugins.executor_dask.worker import StoredFiles
from collidium_plugins.storage_local import LocalStorage

LIMITS: Final = Limits(memory_bytes=512 * 1024**2, seconds=60)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("dask"), 2) as cluster:
        yield cluster


@asynccontextmanager
async def connected(cluster: Cluster, workers: int, **other: object) -> AsyncIterator[Dask]:
    """The executor, once the workers have come."""
    executor = Dask(cluster.settings(**other))
    try:
        await (await executor.connected()).wait_for_workers(workers)
        yield executor
    finally:
        await executor.close()


@pytest.fixture
async def executor(cluster: Cluster) -> AsyncIterator[Dask]:
    async with connected(cluster, 2) as executor:
        yield executor


async def test_the_executor_conforms(executor: Dask) -> None:
    await check_executor(executor)


async def test_local_calls_run_on_this_machine(executor: Dask) -> None:
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


def workers_of(cluster: Cluster, _: int) -> list[int]:
    """The processes of both machines that run calls."""
    return [worker for machine in cluster.processes[1:3] for worker in workers(machine.pid)]


@pytest.mark.parametrize("_", range(20 if LONG else 1))
async def test_a_killed_process_of_a_worker_is_repeated(executor: Dask, cluster: Cluster, _: int) -> None:
    with Killer(cluster.processes[1].pid, find=partial(workers_of, cluster)) as killer:
        made = executor.map_repeating(parent_of_parent, [0, 1], LIMITS, raises=())
        assert len([pid async for pid in made]) == 2
        await until(lambda: len(killer.killed) == 1)


async def test_processes_of_workers_killed_for_ever(executor: Dask, cluster: Cluster) -> None:
    killer = Killer(cluster.processes[1].pid, inf, find=partial(workers_of, cluster))
    with killer, pytest.raises(WorkerDied) as caught:
        await anext(executor.map_repeating(parent_of_parent, [0], LIMITS, raises=()))
    assert not isinstance(caught.value, OWN_FAULTS)


async def test_calls_of_lost_workers_go_to_new_ones(tmp_path: Path) -> None:
    """Dask itself keeps a call for ever that was for workers which have gone, where others come later."""
    (tmp_path / "file").touch()
    await LocalStorage(tmp_path / "storage").put("file", tmp_path / "file")
    files = {tmp_path / "file": StoredFile("file", 0)}
    with running(tmp_path / "cluster", 1, {"PLATFORM_DATA_DIR": str(tmp_path)}) as cluster:
        async with connected(cluster, 1) as executor:
            items = [(tmp_path / "name", tmp_path / "file")]
            call = asyncio.create_task(anext(executor.map(wait_with_file, items, LIMITS, files=files)))
            await until(lambda: (tmp_path / "name").exists())
            os.killpg(cluster.processes[1].pid, signal.SIGKILL)
            cluster.start_worker()
            (tmp_path / "name.go").touch()
            assert await call == str(tmp_path / "name")


async def test_a_worker_uses_files_only_as_they_were_stored(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    (tmp_path / "file").write_bytes(b"right")
    await storage.put("file", tmp_path / "file")
    (tmp_path / "worker").mkdir()
    files = StoredFiles(storage, tmp_path / "worker", 1000)
    file = StoredFile("file", 5, hashlib.sha256(b"right").hexdigest())
    for wrong in (b"wrong", b"rig"):
        (storage.directory / "file").write_bytes(wrong)
        with pytest.raises(StorageUnavailable, match="another file for file"):
            async with files.opened([file]):
                pytest.fail("it was used")
    (storage.directory / "file").write_bytes(b"right")
    async with files.opened([file]) as (path,):
        assert path.read_bytes() == b"right"


@pytest.mark.parametrize("change", ["deleted", "exchanged", "cut"])
async def test_a_changed_copy_of_a_worker_is_fetched_again(tmp_path: Path, change: str) -> None:
    """A cleaner of temporary files deletes, a full disk cuts: neither is the fault of what is scored."""
    storage = LocalStorage(tmp_path / "storage")
    (tmp_path / "file").write_bytes(b"right")
    await storage.put("file", tmp_path / "file")
    (tmp_path / "worker").mkdir()
    files = StoredFiles(storage, tmp_path / "worker", 7)
    file, other = (StoredFile(key, 5, hashlib.sha256(b"right").hexdigest()) for key in ("file", "other"))
    async with files.opened([file]) as (path,):
        inode = path.stat().st_ino
    async with files.opened([file]) as (path,):
        assert path.stat().st_ino == inode, "an unchanged one is used again"
        mapped = path.open("rb")
        if change == "deleted":
            path.unlink()
        else:
            path.write_bytes(b"wrong" if change == "exchanged" else b"")
        async with files.opened([file]) as (again,):
            assert again.read_bytes() == b"right"
            assert os.fstat(mapped.fileno()).st_ino != again.stat().st_ino, "who has mapped it keeps it"
        mapped.close()
    await storage.put("other", tmp_path / "file")
    path.unlink()
    async with files.opened([other]) as (path,):
        assert path.read_bytes() == b"right"


async def test_a_lost_scheduler_is_unavailable(tmp_path: Path) -> None:
    with running(tmp_path, 1) as cluster:
        async with connected(cluster, 1, dask_wait_seconds=2) as executor:
            calls = asyncio.create_task(collect(executor, [tmp_path / "one"]))
            await until((tmp_path / "one").exists)
            await executor.check()
            client = await executor.connected()
            cluster.processes[0].kill()
            with pytest.raises(Unavailable, match="cannot be reached"):
                await calls
            await until(lambda: client.status == "closed")
            assert executor.slots > 0
            with pytest.raises(Unavailable, match="cannot be reached") as caught:
                await collect(executor, [tmp_path / "two"])
            assert caught.value.headers["Retry-After"] == "30"
            with pytest.raises(Unavailable, match="cannot be reached"):
                await executor.check()
        assert "cannot be reached" in (await scoring_check(cluster)).found


def test_a_server_starts_without_its_scheduler(tmp_path: Path, unused_tcp_port: int) -> None:
    env = {"PLATFORM_EXECUTOR": "dask", "PLATFORM_DASK_SCHEDULER": f"tcp://127.0.0.1:{unused_tcp_port}"}
    with ServerProcess(tmp_path, env=env | {"PLATFORM_DASK_WAIT_SECONDS": "1"}) as server:
        eventually(lambda: "the executor is away: the scheduler at tcp://" in server.log())


async def test_calls_share_one_connection_attempt(tmp_path: Path, unused_tcp_port: int) -> None:
    address = f"tcp://127.0.0.1:{unused_tcp_port}"
    executor = Dask(settings.load(data_dir=tmp_path, dask_scheduler=address, dask_wait_seconds=1))
    async with asyncio.timeout(15):
        checks = await asyncio.gather(*(executor.check() for _ in range(20)), return_exceptions=True)
    assert {type(error) for error in checks} == {Unavailable}
    await executor.close()


async def test_workers_with_other_code_get_no_calls(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(executor_dask, "same_code", lambda: "collidium-other")
    async with connected(cluster, 2, dask_wait_seconds=1) as executor:
        with pytest.raises(Unavailable, match="no worker with this release"):
            await collect(executor, [tmp_path / "never"])
        with pytest.raises(Unavailable, match="no worker with this release"):
            await executor.check()
    assert (await scoring_check(cluster)).found.startswith("no worker with this release")
    assert not (tmp_path / "never").exists()


def test_missing_settings_are_named_together(tmp_path: Path) -> None:
    chosen = settings.load(data_dir=tmp_path, executor="dask", dask_scheduler="tls://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match=r"(?s)DASK_CA .*DASK_CERTIFICATE .*DASK_KEY "):
        collidium_executors(chosen)
    with pytest.raises(ConfigurationError, match="PLATFORM_DASK_SCHEDULER"):
        collidium_executors(settings.load(data_dir=tmp_path, executor="dask"))


async def scoring_check(cluster: Cluster) -> HealthCheck:
    """What `collidium doctor` finds of scoring."""
    found = await examine(cluster.settings(dask_wait_seconds=1), plugins.load())
    (check,) = (check for check in found if check.name == "scoring")
    assert check.status == "failed"
    return check


async def collect(executor: Dask, names: list[Path]) -> list[str]:
    return [name async for name in executor.map(wait_for_word, [str(name) for name in names], LIMITS)]
