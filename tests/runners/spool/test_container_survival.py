"""Jobs in containers survive the processes that follow them, and what befalls those and the machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.needs import Needs
from tests.podman import Podman
from tests.runners.following import reaches, runs, unavailable
from tests.runners.spool.conftest import MakeImage, MakeRunner, Order, Release
from tests.waiting import eventually, until

from collidium import settings
from collidium.contracts.runner import JobState, JobStatus, RunnerRefused, RunnerUnavailable
from collidium.runtime.containers import Engine, Engines
from collidium_runners.container import container_runner
from collidium_runners.spool.spool import CANCELLED, Spool, SpooledJob


@pytest.fixture(scope="module")
def kind() -> str:
    return "container"


@pytest.mark.parametrize("made", ["nothing", "a container", "a container that runs"])
async def test_a_launch_that_was_interrupted_goes_on(
    make_runner: MakeRunner, order: Order, podman: Podman, image: str, spool: Spool, made: str
) -> None:
    """A process was killed after it had taken the place for the job; here only its steps are taken."""
    with spool.locked():
        entry = spool.put(SpooledJob(order("gated"), "podman", time.time(), has_slot=True))
    if made != "nothing":
        podman.run("create", "--name", entry.name, "--init", image, "sleep", "1000")
    if made == "a container that runs":
        podman.run("start", entry.name)
    runner = make_runner()
    await runs(runner, entry.request_id)
    assert podman.run("ps", "--format", "{{.Names}}").split() == [entry.name]
    await runner.cancel(entry.request_id)
    assert (await reaches(runner, entry.request_id)).state == JobState.CANCELLED


async def test_a_cancelled_launch_ends_before_it_began(
    make_runner: MakeRunner, order: Order, podman: Podman, image: str, spool: Spool
) -> None:
    with spool.locked():
        entry = spool.put(SpooledJob(order(), "podman", time.time(), has_slot=True))
    podman.run("create", "--name", entry.name, image, "sleep", "1000")
    runner = make_runner()
    with spool.locked():
        spool.change(entry, stop=CANCELLED)
    status = await runner.poll(entry.request_id)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled before it began")
    assert podman.run("ps", "--all", "--quiet") == ""


async def test_an_end_that_was_interrupted_keeps_its_verdict(
    make_runner: MakeRunner, order: Order, podman: Podman, image: str, spool: Spool
) -> None:
    """It had been written down; container and place were still there."""
    verdict = JobStatus(JobState.COMPLETED)
    with spool.locked():
        entry = SpooledJob(order(), "podman", time.time(), has_slot=True, launched=True, status=verdict)
        spool.put(entry)
    podman.run("create", "--name", entry.name, image, "sleep", "1000")
    assert await make_runner().poll(entry.request_id) == verdict
    assert podman.run("ps", "--all", "--quiet") == ""
    with spool.locked():
        assert spool.started() == []


async def test_a_move_that_was_interrupted_counts_once(order: Order, spool: Spool) -> None:
    """Who was killed while a job got its place left two files."""
    with spool.locked():
        waiting = spool.put(SpooledJob(order(), "podman", time.time()))
        copy = (spool.directory / "waiting" / f"{waiting.request_id}.json").read_text()
        started = spool.change(waiting, has_slot=True)
        (spool.directory / "waiting" / f"{waiting.request_id}.json").write_text(copy)
        assert spool.waiting() == []
        assert spool.started() == [started]
    assert spool.find(waiting.request_id) == started


async def test_places_are_given_by_one_process_at_a_time(
    make_runner: MakeRunner, order: Order, spool: Spool, podman: Podman, image: str
) -> None:
    """The place that was free when it came is taken when its turn comes."""
    runner = make_runner()
    with spool.locked():
        submitted = asyncio.create_task(runner.submit(order()))
        await until(lambda: _is_waited_for(spool.directory / "lock"))
        faster = spool.put(SpooledJob(order("gated"), "podman", time.time(), has_slot=True, launched=True))
        podman.run("run", "--detach", "--init", "--name", faster.name, image, "sleep", "1000")
    status = await runner.poll(await submitted)
    assert status.state == JobState.QUEUED
    await runner.cancel(faster.request_id)


def _is_waited_for(file: Path) -> bool:
    waiting = [line for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
    return any(f":{file.stat().st_ino} " in line for line in waiting)


async def test_a_container_that_was_removed_is_reported(
    make_runner: MakeRunner, order: Order, podman: Podman
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    podman.run("rm", "--force", "--time", "0", f"collidium-{handle}")
    status = await runner.poll(handle)
    assert (status.state, status.reason) == (JobState.FAILED, "its container was removed before it ended")


async def test_a_container_that_cannot_be_removed_takes_no_place(
    make_runner: MakeRunner,
    order: Order,
    podman: Podman,
    image: str,
    release: Release,
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    # Podman removes nothing that another container leans on.
    podman.run("create", "--name", "leans", "--pid", f"container:collidium-{handle}", image, "sleep", "1")
    release(handle)
    assert (await reaches(runner, handle)).state == JobState.COMPLETED
    assert f"request {handle}: the ended job cannot be removed" in caplog.text
    assert (await reaches(runner, await runner.submit(order()))).state == JobState.COMPLETED
    for name in ("leans", f"collidium-{handle}"):
        podman.run("rm", name)


async def test_a_restart_of_the_machine_is_reported(
    needs: Needs, make_image: MakeImage, order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("podman")
    with Podman() as podman:
        for name, value in podman.environment.items():
            monkeypatch.setenv(name, value)
        runner = container_runner(
            settings.load(
                data_dir=tmp_path / "data",
                container_runtime="podman",
                container_image=make_image(podman),
                pipeline_command="pipeline {channel} {output}",
            )
        )
        handle = await runner.submit(order("gated"))
        await runs(runner, handle)
        _restart_machine(podman, f"collidium-{handle}")
        status = await runner.poll(handle)
    assert (status.state, status.reason) == (JobState.FAILED, "the machine was restarted while it ran")


def _restart_machine(podman: Podman, container: str) -> None:
    """As podman sees it: its processes are gone, and so is what it kept in memory-backed directories."""
    state = json.loads(podman.run("inspect", "--format", "{{json .State}}", container))
    for process in (state["ConmonPid"], state["Pid"]):
        os.kill(process, signal.SIGKILL)
    eventually(lambda: not any(Path(f"/proc/{state[name]}/root").exists() for name in ("ConmonPid", "Pid")))
    (podman.directory / "run" / "alive").unlink()


async def test_an_engine_that_goes_away_is_waited_for(
    make_runner: MakeRunner, order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make_runner()
    completed = await runner.submit(order())
    await reaches(runner, completed)
    runs, waits = await runner.submit(order("gated")), await runner.submit(order())
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        statuses = await runner.poll_many([completed, runs, waits])
        assert statuses[completed] == JobStatus(JobState.COMPLETED, (await runner.poll(completed)).node_hours)
        assert isinstance(statuses[runs], RunnerUnavailable)
        assert (await runner.poll(waits)).state == JobState.QUEUED
        with unavailable("no container engine responds", operators="podman"):
            await make_runner().submit(order())
    assert (await runner.poll(runs)).state == JobState.RUNNING
    await runner.cancel(runs)
    assert (await reaches(runner, waits)).state == JobState.COMPLETED


async def test_old_output_is_deleted_but_the_job_stays_known(
    make_runner: MakeRunner, order: Order, spool: Spool, tmp_path: Path
) -> None:
    runner, job = make_runner(container_keep_days=1), order()
    handle = await runner.submit(job)
    status = await reaches(runner, handle)
    entry = spool.find(handle)
    assert entry is not None
    with spool.locked():
        spool.change(entry, ended_at=entry.ended_at - 86_401)
    await reaches(runner, await runner.submit(order()))
    assert await runner.submit(job) == handle
    assert await runner.poll(handle) == status
    with pytest.raises(RunnerRefused, match="missing"):
        await runner.collect(handle, tmp_path, 2**30)


@pytest.fixture
def docker_without_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client, as it is on machines whose engine was never started."""
    client = tmp_path / "bin" / "docker"
    client.parent.mkdir()
    client.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon at unix:///x.' >&2\nexit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(client.parent), prepend=os.pathsep)


@pytest.mark.usefixtures("podman", "docker_without_engine")
def test_a_client_without_an_engine_is_not_chosen() -> None:
    assert Engines("auto").choose() == Engine("podman", rootless=os.getuid() != 0)
    with unavailable("no container engine responds", operators="docker does not respond: Cannot connect"):
        Engines("docker").choose()


@pytest.mark.usefixtures("docker_without_engine")
async def test_without_any_engine_all_problems_are_reported(
    make_runner: MakeRunner, order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, job = make_runner(container_runtime="auto"), order()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    with unavailable("no container engine", operators="docker does not respond: .*; podman is not installed"):
        await runner.submit(job)
    assert await runner.find(job.request_id) is None
