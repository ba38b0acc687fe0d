"""What goes wrong around a job: controllers that stop and forget, answers that are lost, nonsense."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.runners.following import reaches, runs, unavailable
from tests.runners.slurm.cluster import SlurmCluster
from tests.runners.slurm.conftest import MakeRunner, Order
from tests.stubs import listening, response

from collidium.contracts.runner import Job, JobState, RunnerRefused, RunnerUnavailable
from collidium_runners.slurm import SlurmRunner
from collidium_runners.slurm.backend import SlurmSubmission
from collidium_runners.slurm.commands import CommandBackend


def jobs_of(cluster: SlurmCluster, job: Job) -> list[str]:
    """Ids of the jobs of a request, ended ones too."""
    name = f"--name=collidium-{job.request_id}"
    return cluster.command("squeue", "--noheader", "--states=all", "--format=%F", name).split()


async def test_a_controller_that_restarts_loses_no_job(
    make_runner: MakeRunner, order: Order, slurm_cluster: SlurmCluster, open_gate: Callable[[], None]
) -> None:
    doors = ("rest", "commands")
    runners = [make_runner(backend) for backend in doors]
    impatient = [make_runner(backend, slurm_timeout_seconds=1) for backend in doors]
    handle = await runners[0].submit(order("gated"))
    await runs(runners[0], handle)
    slurm_cluster.stop_controller()
    try:
        for runner in impatient:
            with pytest.raises(RunnerUnavailable, match="did not answer within 1 s"):
                await runner.poll(handle)
    finally:
        slurm_cluster.start_controller()
    for runner in runners:
        await runs(runner, handle)
    open_gate()
    for runner in runners:
        assert (await reaches(runner, handle)).state == JobState.COMPLETED


@pytest.mark.long  # sbatch and slurmrestd try for 20 s
async def test_an_order_without_a_controller_is_not_rejected(
    make_runner: MakeRunner, backend: str, order: Order, slurm_cluster: SlurmCluster
) -> None:
    """The commands and the REST API report themselves that the controller is away."""
    job, runner = order(), make_runner(backend, slurm_timeout_seconds=60)
    slurm_cluster.stop_controller()
    try:
        with pytest.raises(RunnerUnavailable, match="does not respond: the job is sent again"):
            await runner.submit(job)
    finally:
        slurm_cluster.start_controller()
    handle = await runner.submit(job)
    assert len(jobs_of(slurm_cluster, job)) == 1
    assert (await reaches(runner, handle)).state == JobState.COMPLETED


async def test_a_job_that_is_requeued_runs_again_and_completes(
    make_runner: MakeRunner,
    backend: str,
    order: Order,
    slurm_cluster: SlurmCluster,
    open_gate: Callable[[], None],
) -> None:
    """As after a preemption: its first run is no failure."""
    runner, job = make_runner(backend), order("gated")
    handle = await runner.submit(job)
    await runs(runner, handle)
    slurm_cluster.command("scontrol", "requeue", handle.partition(".")[0])
    await reaches(runner, handle, {JobState.QUEUED})
    # Slurm waits for two minutes.
    slurm_cluster.command("scontrol", "update", f"jobid={handle.partition('.')[0]}", "starttime=now")
    await runs(runner, handle)
    open_gate()
    assert (await reaches(runner, handle)).state == JobState.COMPLETED


async def test_a_command_ends_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site's wrapper of a command, whose child holds the pipes."""
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\nsleep 20 &\nwait\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    async with asyncio.timeout(15):
        with pytest.raises(RunnerUnavailable, match="did not answer within 1 s"):
            await CommandBackend(None, timeout_seconds=1).tasks([1])


async def test_jobs_forgotten_by_slurm_are_recovered_from_records(
    make_runner: MakeRunner, order: Order, slurm_cluster: SlurmCluster, tmp_path: Path, folder: Path
) -> None:
    runner, other = make_runner("commands"), make_runner("rest")
    done, failed, blocking, unwanted, lost = order(events=4), order("fail"), order("gated"), order(), order()
    ended = [await runner.submit(job) for job in (done, failed)]
    for handle in ended:
        await reaches(runner, handle)
    blocker = await make_runner(slurm_cpus_per_part=4).submit(blocking)
    await runs(runner, blocker)
    handles = [*ended, *[await runner.submit(job) for job in (unwanted, lost)]]
    await runner.cancel(handles[2])
    slurm_cluster.stop_controller()
    slurm_cluster.start_controller("-c")
    statuses = await runner.poll_many(handles)
    assert [(status.state, status.reason) for status in statuses.values()] == [
        (JobState.COMPLETED, None),
        (JobState.FAILED, "exit code 3"),
        (JobState.CANCELLED, "cancelled"),
        (JobState.FAILED, "Slurm does not know it any more, and it left no result"),
    ]
    assert statuses == await other.poll_many(handles)
    assert len(await other.collect(handles[0], tmp_path / "output", 2**30)) == 2
    # As if the process that submitted had been killed before it could write the answer down.
    (folder / done.request_id / "job").unlink()
    assert await other.find(done.request_id) == handles[0] == await other.submit(done)
    # The node ends what its controller does not know.
    await reaches(runner, blocker, {JobState.FAILED, JobState.CANCELLED})


async def test_a_job_whose_submitter_was_killed_is_found(
    make_runner: MakeRunner, backend: str, order: Order, slurm_cluster: SlurmCluster, folder: Path
) -> None:
    job = order("gated")
    handle = await make_runner(backend).submit(job)
    (folder / job.request_id / "job").unlink()
    restarted = make_runner(backend)
    assert await restarted.submit(job) == handle
    assert len(jobs_of(slurm_cluster, job)) == 1
    (folder / job.request_id / "job").unlink()
    assert await make_runner(backend).find(job.request_id) == handle
    await restarted.cancel(handle)


def lose_answers(runner: SlurmRunner) -> None:
    """Jobs are queued, and no answer reports it."""
    submit = runner._backend.submit

    async def lose(submission: SlurmSubmission) -> int:
        await submit(submission)
        raise RunnerUnavailable("the answer was lost")

    runner._backend.submit = lose  # the fault that is tested


async def test_a_job_whose_answer_was_lost_is_found(
    make_runner: MakeRunner, backend: str, order: Order, slurm_cluster: SlurmCluster
) -> None:
    job = order("gated")
    runner = make_runner(backend)
    lose_answers(runner)
    handle = await runner.submit(job)
    assert jobs_of(slurm_cluster, job) == [handle.partition(".")[0]]
    await runner.cancel(handle)


async def test_a_request_that_was_never_queued_is_not_found(
    make_runner: MakeRunner, backend: str, order: Order
) -> None:
    runner = make_runner(backend)
    assert await runner.find(order().request_id) is None
    assert await runner.find("../../etc") is None


async def test_a_job_that_slurm_never_had_is_refused(make_runner: MakeRunner, backend: str) -> None:
    runner = make_runner(backend)
    statuses = await runner.poll_many(["999998.1.x", "999999.1.y"])
    assert [str(status) for status in statuses.values()] == [
        "Slurm does not know this job, and its folder is gone"
    ] * 2
    with pytest.raises(RunnerRefused, match="does not know this job"):
        await runner.poll("999999.1.x")
    await runner.cancel("999999.1.x")


async def test_a_renewed_token_is_used(make_runner: MakeRunner, tmp_path: Path, order: Order) -> None:
    runner = make_runner("rest")
    handle = await runner.submit(order("gated"))
    token = (tmp_path / "token").read_text()
    (tmp_path / "token").write_text("eyJhbGciOiJIUzI1NiJ9.e30.expired")
    with pytest.raises(RunnerUnavailable) as error:
        await runner.poll(handle)
    assert "expired" not in str(error.value)
    (tmp_path / "token").write_text(f"SLURM_JWT={token}\n")
    await runs(runner, handle)
    await runner.cancel(handle)


@pytest.mark.parametrize("text", [None, "", "two words", "line\nX-Injected: 1"])
async def test_a_token_file_that_holds_no_token_is_reported(
    make_runner: MakeRunner, tmp_path: Path, text: str | None
) -> None:
    runner = make_runner("rest")
    (tmp_path / "token").unlink()
    if text is not None:
        (tmp_path / "token").write_text(text)
    with unavailable("no token", operators="PLATFORM_SLURM_TOKEN_FILE cannot be read"):
        await runner.poll("1.1.x")


@pytest.fixture
async def answering() -> AsyncIterator[Callable[[bytes], str]]:
    """Starts servers with given answers; gives their addresses."""
    answers: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answers[-1])
        await writer.drain()
        writer.close()

    async with listening(answer) as url:

        def start(answer: bytes) -> str:
            answers.append(answer)
            return url

        yield start


@pytest.mark.parametrize(
    "answer",
    [
        response(200, "<html>maintenance</html>"),
        response(502, "<html>maintenance</html>"),
        response(200, ""),
        response(200, "[]"),
        response(200, '{"jobs": {}}'),
        response(200, "[" * 100_000),
        response(500, '{"errors": ["x", null]}'),
        response(500, '{"errors": 5}'),
        response(302, "{}"),
        response(401, "Authentication failure"),
        b"SSH-2.0-OpenSSH\r\n",
        b"",
    ],
)
async def test_nonsense_is_asked_again_later(
    make_runner: MakeRunner, answering: Callable[[bytes], str], order: Order, answer: bytes, tmp_path: Path
) -> None:
    runner = make_runner("rest", slurm_url=answering(answer), slurm_timeout_seconds=10)
    for call in (runner.submit(order()), runner.poll("1.1.x"), runner.cancel("1.1.x")):
        with pytest.raises(RunnerUnavailable) as error:
            await call
        assert (tmp_path / "token").read_text() not in str(error.value)


async def test_jobs_of_no_known_shape_are_left_out(
    make_runner: MakeRunner, answering: Callable[[bytes], str]
) -> None:
    shapes = ["null", "1", "{}", '{"job_id": 1, "name": 5, "job_state": null}']
    ids = ["null", '"x"', "NaN", "1e999", "-1", "true", '{"set": false}']
    shapes += [f'{{"job_id": {job_id}}}' for job_id in ids]
    jobs = f'{{"jobs": [{", ".join(shapes)}]}}'
    runner = make_runner("rest", slurm_url=answering(response(200, jobs)))
    with pytest.raises(RunnerRefused):
        await runner.poll("1.1.x")


async def test_commands_that_are_not_there_are_reported(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch, order: Order
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    runner = make_runner()
    with pytest.raises(RunnerUnavailable, match="sbatch cannot be started: No such file"):
        await runner.submit(order())
    with pytest.raises(RunnerUnavailable, match="squeue cannot be started"):
        await runner.poll("1.1.x")


async def test_a_shared_folder_that_is_not_mounted_is_reported(
    make_runner: MakeRunner, tmp_path: Path, order: Order
) -> None:
    runner = make_runner(slurm_directory=tmp_path / "absent")
    for call in (runner.submit(order()), runner.find(order().request_id), runner.poll("999999.1.x")):
        with unavailable("folder of jobs does not exist", operators="PLATFORM_SLURM_DIRECTORY .*absent"):
            await call
    assert not (tmp_path / "absent").exists()


async def test_a_folder_that_cannot_be_used_is_reported(
    make_runner: MakeRunner, folder: Path, order: Order
) -> None:
    folder.parent.mkdir()
    folder.touch()
    runner = make_runner()
    for call in (runner.submit(order()), runner.poll("999999.1.x"), runner.cancel("999999.1.x")):
        with unavailable("folder of jobs cannot be used", operators=str(folder)):
            await call


async def test_a_part_that_went_missing_is_reported(
    make_runner: MakeRunner, order: Order, folder: Path, tmp_path: Path
) -> None:
    runner = make_runner()
    job = order(events=4)
    handle = await runner.submit(job)
    await reaches(runner, handle)
    shutil.rmtree(folder / job.request_id / "1")
    with pytest.raises(RunnerRefused, match="output of part 1 is missing"):
        await runner.collect(handle, tmp_path / "output", 2**30)
