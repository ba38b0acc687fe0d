"""Jobs of this machine survive the processes that follow them, and what befalls those and the machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL

import pytest
from tests.runners.following import reaches, runs
from tests.runners.local.conftest import MakeRunner, family
from tests.waiting import until

from collidium.contracts.runner import Job, JobState
from collidium_runners.local.processes import Process
from collidium_runners.local.records import Record, Started
from collidium_runners.spool.spool import CANCELLED, Spool, SpooledJob

Order = Callable[..., Job]
Release = Callable[[str], None]
RecordOf = Callable[[str], Record]

_SERVER = """\
import asyncio, sys
from collidium import settings
from collidium.contracts.runner import Job
from collidium_runners.local.engine import local_runner

async def serve(request_id):
    runner = local_runner(settings.load())
    print(await runner.submit(Job(request_id, "gated", 1, 0, 42, 60)), flush=True)
    await asyncio.Event().wait()

asyncio.run(serve(sys.argv[1]))
"""


@pytest.fixture
def spool(jobs: Path) -> Spool:
    """What the runners of a test wrote down."""
    return Spool(jobs)


@pytest.fixture
def stranger() -> Iterator[Process]:
    """A process that is nobody's job, and that lives when the test is over."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as sleeper:
        process = Process.of(sleeper.pid)
        assert process is not None
        yield process
        lived = process.is_alive
        sleeper.kill()
    assert lived


def started(record: Record) -> Started:
    found = record.started
    assert found is not None
    return found


async def test_a_job_outlives_the_server_that_started_it(
    make_runner: MakeRunner, order: Order, release: Release, pipeline: Path, tmp_path: Path
) -> None:
    env = {
        "PLATFORM_DATA_DIR": str(tmp_path / "data"),
        "PLATFORM_PIPELINE_COMMAND": f"{pipeline} {{channel}} {{output}}",
    }
    request_id = order().request_id
    handle = await asyncio.to_thread(_submit_and_be_killed, request_id, env)
    runner = make_runner()
    assert await runner.find(request_id) == handle
    assert (await runner.poll(handle)).state == JobState.RUNNING
    release(handle)
    assert (await reaches(runner, handle)).state == JobState.COMPLETED
    assert [file.name for file in await runner.collect(handle, tmp_path, 2**30)] == ["particles.parquet"]


def _submit_and_be_killed(request_id: str, env: Mapping[str, str]) -> str:
    """With its whole process group, as Ctrl-C and terminals that close do."""
    words = [sys.executable, "-c", _SERVER, request_id]
    with subprocess.Popen(
        words, env=os.environ | env, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None
        handle = server.stdout.readline().strip()
        os.killpg(server.pid, SIGKILL)
    return handle


@pytest.mark.parametrize("at_work", [False, True])
async def test_a_launch_that_was_interrupted_goes_on(
    make_runner: MakeRunner, order: Order, spool: Spool, record: RecordOf, at_work: bool
) -> None:
    """A process was killed after it had taken the place for the job: it is started once."""
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    entry = spool.find(handle)
    assert entry is not None
    if at_work:
        before = started(record(handle)).shepherd
    else:
        await runner.cancel(handle)
        await reaches(runner, handle)
        entry = SpooledJob(order("gated"), "local", time.time())
    with spool.locked():
        entry = spool.change(entry, has_slot=True, launched=False)
    await runs(make_runner(), entry.request_id)
    if at_work:
        assert started(record(handle)).shepherd == before
        assert before.is_alive
    await runner.cancel(entry.request_id)
    assert (await reaches(runner, entry.request_id)).state == JobState.CANCELLED


async def test_simultaneous_shepherds_start_one_job(
    make_runner: MakeRunner, order: Order, record: RecordOf
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    at_work = started(record(handle))
    command = [sys.executable, "-m", "collidium_runners.local.shepherd", str(record(handle).folder)]
    others = [await asyncio.create_subprocess_exec(*command) for _ in range(3)]
    assert [await other.wait() for other in others] == [0, 0, 0]
    assert started(record(handle)) == at_work
    await runner.cancel(handle)


async def test_a_cancel_that_was_interrupted_goes_on(
    make_runner: MakeRunner, order: Order, spool: Spool
) -> None:
    """It had been written down; the job had not been told yet."""
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    with spool.locked():
        entry = spool.find(handle)
        assert entry is not None
        spool.change(entry, stop=CANCELLED)
    assert (await reaches(runner, handle)).state == JobState.CANCELLED


async def test_a_pipeline_that_is_killed_is_reported(
    make_runner: MakeRunner, order: Order, record: RecordOf
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    shepherd = started(record(handle)).shepherd
    await until(lambda: bool(shepherd.descendants()))
    shepherd.descendants()[0].signal(SIGKILL)
    status = await reaches(runner, handle)
    assert status.reason == "its pipeline was killed, most likely for want of memory"


async def test_killing_the_shepherd_ends_its_processes(
    make_runner: MakeRunner, order: Order, record: RecordOf, jobs: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("family"))
    shepherd = started(record(handle)).shepherd
    processes = await family(jobs / "output" / handle / "0")
    shepherd.signal(SIGKILL)
    await until(lambda: not shepherd.is_alive)
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.FAILED, "its processes were killed from outside")
    assert [process for process in processes if process.is_alive] == []


async def test_a_restart_of_the_machine_is_reported(
    make_runner: MakeRunner, order: Order, record: RecordOf, stranger: Process
) -> None:
    """Whoever has the shepherd's number now is somebody else, and is left alone."""
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    shepherd = started(record(handle)).shepherd
    record(handle).write_started(Started(replace(stranger, boot="another"), time.time()))
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.FAILED, "the machine was restarted while it ran")
    _end(shepherd)


@pytest.mark.parametrize("what", ["poll", "cancel"])
async def test_a_pid_reused_by_another_process_is_not_the_job(
    make_runner: MakeRunner, order: Order, record: RecordOf, stranger: Process, what: str
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    shepherd = started(record(handle)).shepherd
    before = replace(stranger, start=stranger.start - 1)
    record(handle).write_started(Started(before, time.time()))
    if what == "cancel":
        await runner.cancel(handle)
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.FAILED, "its processes were killed from outside")
    _end(shepherd)


def _end(shepherd: Process) -> None:
    for process in shepherd.descendants():
        process.signal(SIGKILL)
    shepherd.signal(SIGKILL)


async def test_an_end_that_was_interrupted_keeps_its_verdict(
    make_runner: MakeRunner, order: Order, spool: Spool, release: Release
) -> None:
    """It had been written down; the place was still taken."""
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    release(handle)
    ended = await reaches(runner, handle)
    entry = spool.find(handle)
    assert entry is not None
    with spool.locked():
        spool.change(entry, has_slot=True)
        (spool.directory / "ended" / f"{handle}.json").unlink()
    assert await make_runner().poll(handle) == ended
    with spool.locked():
        assert spool.started() == []


async def test_a_job_unknown_to_slurm_and_folder_has_failed(
    make_runner: MakeRunner, order: Order, record: RecordOf
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    shepherd = started(record(handle)).shepherd
    (record(handle).folder / "started.json").unlink()
    status = await reaches(runner, handle)
    assert not shepherd.is_alive
    assert status.reason == "what was known of its processes was removed before it ended"
