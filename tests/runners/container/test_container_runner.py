"""The container runner runs jobs in real containers, and tells how they ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from tests.podman import Podman
from tests.runners.container.conftest import MakeRunner
from tests.runners.following import reaches, runs
from tests.runners.saying import unavailable

from collidium import settings
from collidium.contracts.runner import (
    Job,
    JobState,
    JobStatus,
    RunnerError,
    RunnerRefused,
)
from collidium.errors import ConfigurationError
from collidium.testing.conformance import check_runner
from collidium_runners.container import collidium_runners

Order = Callable[..., Job]
Release = Callable[[str], None]


async def test_keeps_the_contract(make_runner: MakeRunner, tmp_path: Path) -> None:
    output = tmp_path / "collected"
    output.mkdir()
    await check_runner(make_runner(), output, another=make_runner)


async def test_leaves_nothing_behind_but_the_output(
    make_runner: MakeRunner, order: Order, podman: Podman, tmp_path: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order())
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.COMPLETED, None)
    assert podman.run("ps", "--all", "--quiet") == ""
    jobs = tmp_path / "data" / "container-jobs"
    kept = {str(file.relative_to(jobs)) for file in jobs.rglob("*") if file.is_file()}
    assert kept == {"lock", f"ended/{handle}.json", f"output/{handle}/0/particles.parquet"}


async def test_a_failure_shows_exit_code_and_last_log_line(
    make_runner: MakeRunner, order: Order, tmp_path: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("fail"))
    status = await reaches(runner, handle)
    assert status.state == JobState.FAILED
    assert status.reason == "its pipeline failed: exit code 3; last line of its log: no such geometry: odd"
    assert status.node_hours == Decimal("0.000")
    with pytest.raises(RunnerRefused, match="has not completed"):
        await runner.collect(handle, tmp_path, 2**30)


async def test_a_request_never_runs_twice(make_runner: MakeRunner, order: Order) -> None:
    runner, job = make_runner(), order("fail")
    handle = await runner.submit(job)
    ended = await reaches(runner, handle)
    assert await make_runner().submit(job) == handle
    assert await runner.poll(handle) == ended


async def test_memory_is_limited(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner(container_memory_bytes=32 * 1024**2)
    status = await reaches(runner, await runner.submit(order("memory")))
    assert status.state == JobState.FAILED
    assert status.reason is not None
    assert "memory" in status.reason
    assert "it may use 0.0312 GiB" in status.reason


async def test_time_is_limited(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner(container_time_factor=0.01, container_extra_seconds=0)
    status = await reaches(runner, await runner.submit(order("gated")))
    assert status.state == JobState.FAILED
    assert status.reason == "it was stopped after its time limit of 1 s"


@pytest.mark.parametrize("channel", ["empty", "link"])
async def test_a_pipeline_that_writes_no_table_has_failed(
    make_runner: MakeRunner, order: Order, channel: str
) -> None:
    """A link is no table: it would lead to a file of the server."""
    runner = make_runner()
    status = await reaches(runner, await runner.submit(order(channel)))
    assert (status.state, status.reason) == (JobState.FAILED, "its pipeline ended well but wrote no tables")


async def test_cancel_stops_the_container(
    make_runner: MakeRunner, order: Order, podman: Podman, tmp_path: Path
) -> None:
    runner, other = make_runner(), make_runner()
    handle = await runner.submit(order("gated"))
    await runs(runner, handle)
    await other.cancel(handle)
    assert podman.run("ps", "--quiet") == ""
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled: exit code 143 (SIGTERM)")
    assert not (tmp_path / "data" / "container-jobs" / "output" / handle).exists()


async def test_a_job_that_does_not_heed_the_signal_is_killed(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner()
    handle = await runner.submit(order("deaf"))
    await runs(runner, handle)
    await runner.cancel(handle)
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled: exit code 137 (SIGKILL)")


async def test_no_more_jobs_run_than_there_are_places(
    make_runner: MakeRunner, order: Order, podman: Podman, release: Release
) -> None:
    """Whoever asks: two processes that submit and poll at once never start one too many."""
    runners = [make_runner(container_jobs=2) for _ in range(2)]
    jobs = [order("gated") for _ in range(5)]
    handles = await asyncio.gather(*(runners[n % 2].submit(job) for n, job in enumerate(jobs)))
    for told in await asyncio.gather(*(runner.poll_many(handles) for runner in runners * 2)):
        assert len(_matching(told, JobState.RUNNING)) == 2
        assert len(podman.run("ps", "--quiet").split()) == 2
    told = await runners[0].poll_many(handles)
    waiting = _matching(told, JobState.QUEUED)
    first = told[waiting[0]]
    assert isinstance(first, JobStatus)
    assert first.reason == "it waits for a slot: no more than 2 may run at once"
    while runs := _matching(await runners[0].poll_many(handles), JobState.RUNNING):
        assert len(podman.run("ps", "--quiet").split()) <= 2
        release(runs[0])
        assert (await reaches(runners[1], runs[0])).state == JobState.COMPLETED
    assert _matching(await runners[0].poll_many(handles), JobState.COMPLETED) == handles


async def test_a_job_that_waits_is_cancelled_at_once(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner()
    runs, waits = await runner.submit(order("gated")), await runner.submit(order())
    await runner.cancel(waits)
    status = await runner.poll(waits)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled before it began")
    assert (await runner.poll(runs)).state == JobState.RUNNING
    await runner.cancel(runs)


async def test_a_container_has_no_secret_no_network_and_no_rights(
    make_runner: MakeRunner, order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_TOKEN", "hunter2")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:hunter2@localhost:1")
    runner = make_runner()
    handle = await runner.submit(order("job_environment"))
    await reaches(runner, handle)
    told = tmp_path / "data" / "container-jobs" / "output" / handle / "0" / "told"
    lines = told.read_text().splitlines()
    assert "HOME=/tmp" in lines
    assert not [line for line in lines if "hunter2" in line]
    assert [line for line in lines if line in {"lo", "eth0", "tap0"}] == ["lo"]
    assert "CapEff:\t0000000000000000" in lines
    assert "NoNewPrivs:\t1" in lines
    assert "touch: /here: Read-only file system" in lines


async def test_an_image_that_is_not_there_is_named(make_runner: MakeRunner, order: Order) -> None:
    runner, job = make_runner(container_image="localhost/missing"), order()
    with unavailable("no pipeline to run", operators="podman pull localhost/missing"):
        await runner.submit(job)
    with unavailable("no pipeline to run", operators="PLATFORM_CONTAINER_IMAGE"):
        await make_runner(container_image="").submit(job)
    assert await runner.find(job.request_id) is None


async def test_an_id_that_is_not_plain_is_refused(make_runner: MakeRunner) -> None:
    runner = make_runner()
    with pytest.raises(RunnerRefused):
        await runner.submit(Job("--privileged", "single_muon", 1, 0, 42, 60))
    assert await runner.find("../../etc/passwd") is None


def test_an_unknown_placeholder_is_an_error_of_the_settings(tmp_path: Path) -> None:
    chosen = settings.load(data_dir=tmp_path, pipeline_command="pipeline {token} {output}")
    with pytest.raises(ConfigurationError, match="token"):
        collidium_runners(chosen)


def _matching(told: Mapping[str, JobStatus | RunnerError], state: JobState) -> list[str]:
    return [handle for handle, one in told.items() if isinstance(one, JobStatus) and one.state == state]
