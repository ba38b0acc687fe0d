"""Jobs of this machine survive the processes that follow them, and what befalls those and the machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL

import pytest
from tests.runners.following import reaches, runs
from tests.runners.spool.conftest import MakeRunner, Order, RecordOf, family
from tests.waiting import until

from collidium.contracts.runner import JobState
from collidium_runners.local.processes import JobProcess
from collidium_runners.local.records import FolderRecord, StartRecord
from collidium_runners.spool.spool import Spool, SpooledJob


@pytest.fixture(scope="module")
def kind() -> str:
    return "local"


@pytest.fixture
def unrelated() -> Iterator[JobProcess]:
    """A process that is no job, and that lives when the test is over."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as sleeper:
        process = JobProcess.of(sleeper.pid)
        assert process is not None
        yield process
        lived = process.is_alive
        sleeper.kill()
    assert lived


def started(record: FolderRecord) -> StartRecord:
    found = record.started
    assert found is not None
    return found


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


async def test_a_pipeline_that_is_killed_is_reported(
    make_runner: MakeRunner, order: Order, record: RecordOf
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    shepherd = started(record(handle)).shepherd
    await until(lambda: bool(shepherd.descendants()))
    shepherd.descendants()[0].signal(SIGKILL)
    status = await reaches(runner, handle)
    assert status.reason == "its pipeline was killed, most likely for lack of memory"


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
    make_runner: MakeRunner, order: Order, record: RecordOf, unrelated: JobProcess
) -> None:
    """Another process has the shepherd's number now, and is left alone."""
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    shepherd = started(record(handle)).shepherd
    record(handle).write(StartRecord(replace(unrelated, boot="another"), time.time()))
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.FAILED, "the machine was restarted while it ran")
    _end(shepherd)


@pytest.mark.parametrize("what", ["poll", "cancel"])
async def test_a_pid_reused_by_another_process_is_not_the_job(
    make_runner: MakeRunner, order: Order, record: RecordOf, unrelated: JobProcess, what: str
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    shepherd = started(record(handle)).shepherd
    before = replace(unrelated, start=unrelated.start - 1)
    record(handle).write(StartRecord(before, time.time()))
    if what == "cancel":
        await runner.cancel(handle)
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.FAILED, "its processes were killed from outside")
    _end(shepherd)


def _end(shepherd: JobProcess) -> None:
    for process in shepherd.descendants():
        process.signal(SIGKILL)
    shepherd.signal(SIGKILL)


async def test_a_job_without_any_record_is_ended(
    make_runner: MakeRunner, order: Order, record: RecordOf
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    shepherd = started(record(handle)).shepherd
    (record(handle).folder / "started.json").unlink()
    status = await reaches(runner, handle)
    assert not shepherd.is_alive
    assert status.reason == "the record of its processes was removed before it ended"
