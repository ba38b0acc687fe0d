"""What holds for jobs in containers as for jobs as processes of this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from tests.runners.following import reaches
from tests.runners.spool.conftest import MakeRunner, Order, Release
from tests.waiting import eventually_async, until

from collidium import settings
from collidium.contracts.runner import Job, JobProgress, JobState, JobStatus, RunnerError, RunnerRefused
from collidium.errors import ConfigurationError
from collidium.order import Order as EventOrder
from collidium.testing.conformance import check_runner
from collidium_runners.local.records import FolderRecord
from collidium_runners.spool.spool import CANCELLED, Spool

_SERVER = """\
import asyncio, sys
from collidium import settings
from collidium.contracts.runner import Job
from collidium.order import Order
from collidium_runners.container import container_runner
from collidium_runners.local.engine import local_runner

async def serve(kind, request_id):
    runner = {"container": container_runner, "local": local_runner}[kind](settings.load())
    print(await runner.submit(Job(request_id, Order("gated", 1, 0), 60)), flush=True)
    await asyncio.Event().wait()

asyncio.run(serve(*sys.argv[1:]))
"""


@pytest.fixture
def left(kind: str, jobs: Path, request: pytest.FixtureRequest) -> Callable[[], int]:
    """How many jobs have a container, or live processes."""

    def shepherds() -> int:
        started = [FolderRecord(folder).started for folder in (jobs / "processes").glob("*")]
        return len([one for one in started if one is not None and one.shepherd.is_alive])

    if kind == "local":
        return shepherds
    podman = request.getfixturevalue("podman")
    return lambda: len(podman.run("ps", "--all", "--quiet").split())


async def test_it_keeps_the_contract(make_runner: MakeRunner, tmp_path: Path) -> None:
    output = tmp_path / "collected"
    output.mkdir()
    await check_runner(make_runner(), output, another=make_runner)


async def test_nothing_is_left_but_the_output(
    make_runner: MakeRunner, order: Order, jobs: Path, left: Callable[[], int]
) -> None:
    runner = make_runner()
    handle = await runner.submit(order())
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.COMPLETED, None)
    assert left() == 0
    kept = {str(file.relative_to(jobs)) for file in jobs.rglob("*") if file.is_file()}
    assert kept == {"lock", f"ended/{handle}.json", f"output/{handle}/0/particles.parquet"}


async def test_progress_is_what_the_command_wrote(
    make_runner: MakeRunner, order: Order, release: Release
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("reporting"))

    async def reported() -> bool:
        return await runner.progress(handle) is not None

    await eventually_async(reported)
    assert await make_runner().progress(handle) == JobProgress(2, 4, "simulation", 0.5)
    release(handle)
    await reaches(runner, handle)
    assert await runner.progress(handle) is None


@pytest.mark.parametrize(
    ("channel", "reason"),
    [
        ("fail", "its pipeline failed: exit code 3; last line of its log: no such geometry: odd"),
        ("empty", "its pipeline ended well but wrote no tables"),
        # A link is no table: it would lead to a file of the server.
        ("link", "its pipeline ended well but wrote no tables"),
    ],
)
async def test_a_failure_is_reported(
    make_runner: MakeRunner, order: Order, tmp_path: Path, channel: str, reason: str
) -> None:
    runner = make_runner()
    handle = await runner.submit(order(channel))
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.FAILED, reason)
    assert status.node_hours is not None
    assert 0 <= status.node_hours < 1
    with pytest.raises(RunnerRefused, match="has not completed"):
        await runner.collect(handle, tmp_path, 2**30)


async def test_a_request_never_runs_twice(make_runner: MakeRunner, order: Order) -> None:
    runner, job = make_runner(), order("fail")
    handle = await runner.submit(job)
    ended = await reaches(runner, handle)
    assert await make_runner().submit(job) == handle
    assert await runner.poll(handle) == ended


async def test_time_is_limited(
    kind: str, make_runner: MakeRunner, order: Order, left: Callable[[], int]
) -> None:
    runner = make_runner(**{f"{kind}_time_factor": 0.01, f"{kind}_extra_seconds": 0})
    status = await reaches(runner, await runner.submit(order("gated")))
    assert status.state == JobState.FAILED
    assert status.reason == "it was stopped after its time limit of 1 s"
    assert left() == 0


async def test_a_job_that_does_not_heed_the_signal_is_killed(
    make_runner: MakeRunner, order: Order, jobs: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("deaf"))
    await until((jobs / "output" / handle / "0" / "seen").exists)
    await runner.cancel(handle)
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled: exit code 137 (SIGKILL)")


async def test_no_more_jobs_run_than_there_are_slots(
    kind: str, make_runner: MakeRunner, order: Order, release: Release, left: Callable[[], int]
) -> None:
    """From any process: two that submit and poll at once never start one too many."""
    runners = [make_runner(**{f"{kind}_jobs": 2}) for _ in range(2)]
    jobs = [order("gated") for _ in range(5)]
    handles = await asyncio.gather(*(runners[n % 2].submit(job) for n, job in enumerate(jobs)))
    for statuses in await asyncio.gather(*(runner.poll_many(handles) for runner in runners * 2)):
        assert len(_matching(statuses, JobState.RUNNING)) == 2
        assert left() == 2
    statuses = await runners[0].poll_many(handles)
    first = statuses[_matching(statuses, JobState.QUEUED)[0]]
    assert isinstance(first, JobStatus)
    assert first.reason == "it waits for a slot: no more than 2 may run at once"
    while running := _matching(await runners[0].poll_many(handles), JobState.RUNNING):
        assert left() <= 2
        release(running[0])
        assert (await reaches(runners[1], running[0])).state == JobState.COMPLETED
    assert _matching(await runners[0].poll_many(handles), JobState.COMPLETED) == handles


def _matching(statuses: Mapping[str, JobStatus | RunnerError], state: JobState) -> list[str]:
    return [handle for handle, one in statuses.items() if isinstance(one, JobStatus) and one.state == state]


async def test_a_job_that_waits_is_cancelled_at_once(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner()
    runs, waits = await runner.submit(order("gated")), await runner.submit(order())
    await runner.cancel(waits)
    status = await runner.poll(waits)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled before it began")
    assert (await runner.poll(runs)).state == JobState.RUNNING
    await runner.cancel(runs)


async def test_an_id_that_is_not_plain_is_refused(make_runner: MakeRunner) -> None:
    runner = make_runner()
    for request_id in ("--privileged", "../elsewhere"):
        with pytest.raises(RunnerRefused):
            await runner.submit(Job(request_id, EventOrder("single_muon", 1, 0), 60))
    assert await runner.find("../../etc/passwd") is None


def test_an_unknown_placeholder_is_an_error_of_the_settings(kind: str, tmp_path: Path) -> None:
    chosen = settings.load(data_dir=tmp_path, pipeline_command="pipeline {token} {output}")
    with pytest.raises(ConfigurationError, match="token"):
        import_module(f"collidium_runners.{kind}").collidium_runners(chosen)


async def test_a_job_outlives_the_server_that_started_it(
    kind: str,
    make_runner: MakeRunner,
    chosen: dict[str, Any],
    order: Order,
    release: Release,
    tmp_path: Path,
) -> None:
    env = {f"PLATFORM_{name.upper()}": str(value) for name, value in chosen.items()}
    request_id = order().request_id
    handle = await asyncio.to_thread(_submit_and_be_killed, kind, request_id, env)
    runner = make_runner()
    assert await runner.find(request_id) == handle
    assert (await runner.poll(handle)).state == JobState.RUNNING
    release(handle)
    assert (await reaches(runner, handle)).state == JobState.COMPLETED
    assert [file.name for file in await runner.collect(handle, tmp_path, 2**30)] == ["particles.parquet"]


def _submit_and_be_killed(kind: str, request_id: str, env: Mapping[str, str]) -> str:
    """With its whole process group, as Ctrl-C and terminals that close do."""
    words = [sys.executable, "-c", _SERVER, kind, request_id]
    with subprocess.Popen(
        words, env=os.environ | env, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None
        handle = server.stdout.readline().strip()
        os.killpg(server.pid, SIGKILL)
    return handle


async def test_a_cancel_that_was_interrupted_goes_on(
    make_runner: MakeRunner, order: Order, spool: Spool
) -> None:
    """It had been written down; the job had not been signalled yet."""
    runner = make_runner()
    handle = await runner.submit(order("gated"))
    with spool.locked():
        entry = spool.find(handle)
        assert entry is not None
        spool.change(entry, stop=CANCELLED)
    assert (await reaches(runner, handle)).state == JobState.CANCELLED
