"""The runner local runs jobs as processes of this machine, and reports how they ended."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.runners.following import reaches, unavailable
from tests.runners.spool.conftest import MakeRunner, Order, Release, family

from collidium import settings
from collidium.contracts.runner import JobState
from collidium.errors import ConfigurationError
from collidium_runners.local.records import LOG_BYTES


@pytest.fixture(scope="module")
def kind() -> str:
    return "local"


async def test_memory_is_limited(make_runner: MakeRunner, order: Order) -> None:
    runner = make_runner(local_memory_bytes=64 * 1024**2)
    status = await reaches(runner, await runner.submit(order("memory")))
    assert status.state == JobState.FAILED
    assert status.reason is not None
    assert "memory exhausted" in status.reason


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


async def test_a_job_has_no_secrets_and_private_output(
    make_runner: MakeRunner, order: Order, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ADMIN_TOKEN", "PLATFORM_SECRET_KEY", "HF_TOKEN", "HTTPS_PROXY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    runner = make_runner(local_niceness=7, local_memory_bytes=1024**3)
    handle = await runner.submit(order("environment_of_process"))
    assert (await reaches(runner, handle)).state == JobState.COMPLETED
    output, scratch = jobs / "output" / handle / "0", jobs / "scratch" / handle
    lines = (output / "seen").read_text().splitlines()
    assert not [line for line in lines if "hunter2" in line]
    assert {f"HOME={scratch}", f"TMPDIR={scratch}", "LC_ALL=C.UTF-8", str(scratch)} <= set(lines)
    assert {str(os.nice(0) + 7), "0077", str(1024**2)} <= set(lines)
    # Its input, its output, the log, and the folder that ls reads.
    assert len([line for line in lines if " -> " in line]) == 4
    for path in (output, output / "seen", output / "particles.parquet"):
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


def test_a_missing_program_is_an_error_at_start(make_runner: MakeRunner) -> None:
    make_runner().check()
    runner = make_runner(pipeline_command="no-such-program {output}")
    with pytest.raises(ConfigurationError, match="PLATFORM_PIPELINE_COMMAND: there is no program no-such-p"):
        runner.check()


def test_the_default_command_is_found_next_to_python(make_runner: MakeRunner) -> None:
    command = type(settings.load()).model_fields["pipeline_command"].default
    make_runner(pipeline_command=command).check()
