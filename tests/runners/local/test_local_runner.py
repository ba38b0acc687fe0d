"""The runner local runs jobs as processes of this machine, and tells how they ended."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from tests.runners.following import reaches
from tests.runners.local.conftest import MakeRunner, family
from tests.runners.saying import unavailable
from tests.waiting import until

from collidium import settings
from collidium.contracts.runner import Job, JobState, JobStatus, RunnerError, RunnerRefused
from collidium.errors import ConfigurationError
from collidium.testing.conformance import check_runner
from collidium_runners.local import collidium_runners
from collidium_runners.local.records import LOG_BYTES, Record

Order = Callable[..., Job]
Release = Callable[[str], None]
RecordOf = Callable[[str], Record]


async def test_keeps_the_contract(make_runner: MakeRunner, tmp_path: Path) -> None:
    output = tmp_path / "collected"
    output.mkdir()
    await check_runner(make_runner(), output, another=make_runner)


async def test_leaves_nothing_behind_but_the_output(
    make_runner: MakeRunner, order: Order, jobs: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order())
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.COMPLETED, None)
    kept = {str(file.relative_to(jobs)) for file in jobs.rglob("*") if file.is_file()}
    assert kept == {"lock", f"ended/{handle}.json", f"output/{handle}/0/particles.parquet"}


@pytest.mark.parametrize(
    ("channel", "reason"),
    [
        ("fail", "its pipeline failed: exit code 3; last line of its log: no such geometry: odd"),
        ("crash", "its pipeline failed: exit code 139 (SIGSEGV)"),
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
    assert status == JobStatus(JobState.FAILED, Decimal("0.000"), reason)
    with pytest.raises(RunnerRefused, match="has not completed"):
        await runner.collect(handle, tmp_path, 2**30)


async def test_a_request_never_runs_twice(make_runner: MakeRunner, order: Order) -> None:
    runner, job = make_runner(), order("fail")
    handle = await runner.submit(job)
    ended = await reaches(runner, handle)
    assert await make_runner().submit(job) == handle
    assert await runner.poll(handle) == ended


async def test_memory_is_limited(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner(local_memory_bytes=64 * 1024**2)
    status = await reaches(runner, await runner.submit(order("memory")))
    assert status.state == JobState.FAILED
    assert status.reason is not None
    assert "memory exhausted" in status.reason


async def test_time_is_limited(make_runner: MakeRunner, order: Order, record: RecordOf) -> None:
    runner = make_runner(local_time_factor=0.005, local_extra_seconds=0)
    handle = await runner.submit(order("gated"))
    started = record(handle).started
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (
        JobState.FAILED,
        "it was stopped after its time limit of 0 s",
    )
    assert started is not None
    assert not started.shepherd.is_alive


async def test_cancel_stops_everything_that_belongs_to_the_job(
    make_runner: MakeRunner, order: Order, jobs: Path
) -> None:
    runner, other = make_runner(), make_runner()
    handle = await runner.submit(order("family"))
    processes = await family(jobs / "output" / handle / "0")
    await other.cancel(handle)
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled: exit code 143 (SIGTERM)")
    assert [process for process in processes if process.is_alive] == []
    assert not (jobs / "output" / handle).exists()


async def test_what_a_pipeline_leaves_running_ends_with_it(
    make_runner: MakeRunner, order: Order, release: Release, jobs: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("family"))
    processes = await family(jobs / "output" / handle / "0")
    release(handle)
    assert (await reaches(runner, handle)).state == JobState.COMPLETED
    assert [process for process in processes if process.is_alive] == []


async def test_a_job_that_does_not_heed_the_signal_is_killed(
    make_runner: MakeRunner, order: Order, jobs: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("deaf"))
    await until((jobs / "output" / handle / "0" / "told").exists)
    await runner.cancel(handle)
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled: exit code 137 (SIGKILL)")


async def test_no_more_jobs_run_than_there_are_places(
    make_runner: MakeRunner, order: Order, release: Release
) -> None:
    """Whoever asks: two processes that submit and poll at once never start one too many."""
    runners = [make_runner(local_jobs=2) for _ in range(2)]
    jobs = [order("gated") for _ in range(5)]
    handles = await asyncio.gather(*(runners[n % 2].submit(job) for n, job in enumerate(jobs)))
    for told in await asyncio.gather(*(runner.poll_many(handles) for runner in runners * 2)):
        assert len(_matching(told, JobState.RUNNING)) == 2
    waiting = _matching(await runners[0].poll_many(handles), JobState.QUEUED)
    first = await runners[0].poll(waiting[0])
    assert first.reason == "it waits for a slot: no more than 2 may run at once"
    while running := _matching(await runners[0].poll_many(handles), JobState.RUNNING):
        assert len(running) <= 2
        release(running[0])
        assert (await reaches(runners[1], running[0])).state == JobState.COMPLETED
    assert _matching(await runners[0].poll_many(handles), JobState.COMPLETED) == handles


def _matching(told: Mapping[str, JobStatus | RunnerError], state: JobState) -> list[str]:
    return [handle for handle, one in told.items() if isinstance(one, JobStatus) and one.state == state]


async def test_a_job_that_waits_is_cancelled_at_once(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner()
    runs, waits = await runner.submit(order("gated")), await runner.submit(order())
    await runner.cancel(waits)
    status = await runner.poll(waits)
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled before it began")
    assert (await runner.poll(runs)).state == JobState.RUNNING
    await runner.cancel(runs)


async def test_a_job_has_no_secrets_and_private_output(
    make_runner: MakeRunner, order: Order, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ADMIN_TOKEN", "PLATFORM_SECRET_KEY", "HF_TOKEN", "HTTPS_PROXY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    runner = make_runner(local_niceness=7, local_memory_bytes=1024**3)
    handle = await runner.submit(order("job_environment"))
    assert (await reaches(runner, handle)).state == JobState.COMPLETED
    output, scratch = jobs / "output" / handle / "0", jobs / "scratch" / handle
    lines = (output / "told").read_text().splitlines()
    assert not [line for line in lines if "hunter2" in line]
    assert {f"HOME={scratch}", f"TMPDIR={scratch}", "LC_ALL=C.UTF-8", str(scratch)} <= set(lines)
    assert {"7", "0077", str(1024**2)} <= set(lines)
    # Its input, its output, the log, and the folder that ls reads.
    assert len([line for line in lines if " -> " in line]) == 4
    for path in (output, output / "told", output / "particles.parquet"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


async def test_a_log_is_bounded_and_its_end_is_kept(
    make_runner: MakeRunner, order: Order, jobs: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("loud"))
    status = await reaches(runner, handle)
    assert status.reason == "its pipeline failed: exit code 1; last line of its log: 4000000"
    entry = (jobs / "ended" / f"{handle}.json").stat()
    assert entry.st_size < 4096 < LOG_BYTES


async def test_a_program_that_is_not_there_is_waited_for(
    make_runner: MakeRunner, order: Order, pipeline: Path
) -> None:
    runner, job = make_runner(), order("gated")
    handle = await runner.submit(job)
    waits = await runner.submit(order())
    aside = pipeline.rename(pipeline.with_name("aside"))
    with unavailable("no pipeline to run", operators="PLATFORM_PIPELINE_COMMAND"):
        await runner.submit(order())
    await runner.cancel(handle)
    status = await runner.poll(waits)
    assert status.state == JobState.QUEUED
    assert status.reason is not None
    assert "no pipeline to run" in status.reason
    aside.rename(pipeline)
    assert (await reaches(runner, waits)).state == JobState.COMPLETED


async def test_a_program_that_cannot_run_is_reported(
    make_runner: MakeRunner, order: Order, pipeline: Path
) -> None:
    pipeline.write_text("#!/no/such/shell\n")
    runner = make_runner()
    status = await reaches(runner, await runner.submit(order()))
    assert status.reason is not None
    assert status.reason.startswith("its pipeline cannot be started: exit code 127")


async def test_an_id_that_is_not_plain_is_refused(make_runner: MakeRunner) -> None:
    runner = make_runner()
    with pytest.raises(RunnerRefused):
        await runner.submit(Job("../elsewhere", "single_muon", 1, 0, 42, 60))
    assert await runner.find("../../etc/passwd") is None


def test_an_unknown_placeholder_is_an_error_of_the_settings(tmp_path: Path) -> None:
    chosen = settings.load(data_dir=tmp_path, pipeline_command="pipeline {token} {output}")
    with pytest.raises(ConfigurationError, match="token"):
        collidium_runners(chosen)


def test_a_missing_program_is_an_error_at_start(make_runner: MakeRunner) -> None:
    make_runner().check()
    runner = make_runner(pipeline_command="no-such-program {output}")
    with pytest.raises(ConfigurationError, match="PLATFORM_PIPELINE_COMMAND: there is no program no-such-p"):
        runner.check()


def test_the_default_command_is_found_next_to_python(make_runner: MakeRunner) -> None:
    command = type(settings.load()).model_fields["pipeline_command"].default
    make_runner(pipeline_command=command).check()
