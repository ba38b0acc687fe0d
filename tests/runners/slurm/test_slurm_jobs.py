"""Jobs on a real Slurm, by its REST API and by its commands."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runners.following import PAUSE, reaches, runs, unavailable
from tests.runners.slurm.cluster import MAX_ARRAY_SIZE, SlurmCluster
from tests.runners.slurm.conftest import MakeRunner, Order
from tests.waiting import eventually_async, until

from collidium.contracts.runner import JobProgress, JobState, RunnerRefused, RunnerUnavailable
from collidium.testing.conformance import check_runner


async def test_it_keeps_the_contract(make_runner: MakeRunner, backend: str, tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    await check_runner(
        make_runner(backend), tmp_path / "output", another=lambda: make_runner(backend), interval=PAUSE
    )


async def test_the_events_are_the_same_whatever_the_cut(
    make_runner: MakeRunner, backend: str, order: Order, tmp_path: Path
) -> None:
    contents = []
    for events_per_part, count in ((0, 1), (3, 3), (1, 7)):
        runner = make_runner(backend, slurm_events_per_part=events_per_part)
        handle = await runner.submit(order(events=7))
        status = await reaches(runner, handle)
        assert (status.state, status.reason) == (JobState.COMPLETED, None)
        assert status.node_hours is not None
        files = await runner.collect(handle, tmp_path / str(count), 2**30)
        assert [file.name for file in files] == names(count)
        contents.append(pa.concat_tables(map(pq.read_table, files)))
    assert contents[0]["event_id"].to_pylist() == list(range(7))
    assert contents[0] == contents[1] == contents[2]


def names(parts: int) -> list[str]:
    """The shards of so many parts."""
    if parts == 1:
        return ["particles.parquet"]
    return [f"particles-{part:05d}-of-{parts:05d}.parquet" for part in range(parts)]


async def test_a_part_that_fails_once_is_simulated_again(
    make_runner: MakeRunner, order: Order, tmp_path: Path
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("fail_once", events=4))
    assert (await reaches(runner, handle)).state == JobState.COMPLETED
    assert (tmp_path / "gate.failed").exists()
    files = await runner.collect(handle, tmp_path / "output", 2**30)
    assert [pq.read_metadata(file).num_rows for file in files] == [2, 2]


async def test_parts_that_wait_are_cancelled_when_one_has_failed(
    make_runner: MakeRunner, backend: str, order: Order, folder: Path, open_gate: Callable[[], None]
) -> None:
    runner = make_runner(backend)
    job = order("fail_waiting", events=18)  # six parts: more than the node takes at once
    handle = await runner.submit(job)
    await until((folder / job.request_id / "status" / f"{handle.partition('.')[0]}_0").exists)
    open_gate()
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.FAILED, "1 of 6 parts failed; part 0: exit code 3")
    # The node has room for four parts, and that of the one that failed was free only after its end.
    assert not {path.name for path in (folder / job.request_id).iterdir()} & {"0", "4", "5"}


async def test_progress_is_that_of_all_parts(
    make_runner: MakeRunner, order: Order, open_gate: Callable[[], None]
) -> None:
    runner = make_runner()
    handle = await runner.submit(order("reporting", events=6))

    async def both() -> bool:
        found = await runner.progress(handle)
        return found is not None and found.fraction == 0.5

    await eventually_async(both)
    assert await make_runner().progress(handle) == JobProgress(1, 1, "0 of 2 parts done", 0.5)
    open_gate()
    await reaches(runner, handle)


async def test_node_hours_are_what_slurm_counted(
    make_runner: MakeRunner, backend: str, order: Order, slurm_cluster: SlurmCluster
) -> None:
    runner = make_runner(backend)
    handle = await runner.submit(order(events=6))
    await reaches(runner, handle)
    job_id = handle.partition(".")[0]
    shown = slurm_cluster.command("scontrol", "--oneliner", "show", "job", job_id)
    times = re.findall(r" RunTime=00:00:(\d\d) ", shown)
    assert len(times) == 2
    tasks = await runner._backend.tasks([int(job_id)])
    assert sum(task.node_seconds or 0 for task in tasks) == sum(map(int, times))


async def test_a_part_that_fails_fails_the_job(
    make_runner: MakeRunner, backend: str, order: Order, tmp_path: Path
) -> None:
    runner = make_runner(backend)
    handle = await runner.submit(order("fail", events=10))
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (JobState.FAILED, "1 of 4 parts failed; part 0: exit code 3")
    with pytest.raises(RunnerRefused, match="the output of part 0 is missing"):
        await runner.collect(handle, tmp_path / "output", 2**30)


async def test_a_job_that_runs_is_cancelled_with_all_its_parts(
    make_runner: MakeRunner, backend: str, order: Order
) -> None:
    runner = make_runner(backend)
    handle = await runner.submit(order("gated", events=18))  # six parts: more than the node takes at once
    await runs(runner, handle)
    await runner.cancel(handle)
    status = await reaches(runner, handle)
    assert (status.state, status.reason) == (
        JobState.CANCELLED,
        "6 of 6 parts cancelled; part 0: cancelled",
    )
    assert status.node_hours is not None


async def test_two_processes_that_submit_one_request_start_one_job(
    make_runner: MakeRunner, backend: str, order: Order, slurm_cluster: SlurmCluster
) -> None:
    job = order("gated")
    runners = [make_runner(backend) for _ in range(3)]
    handles = await asyncio.gather(*(runner.submit(job) for runner in runners))
    assert len(set(handles)) == 1
    name = f"--name=collidium-{job.request_id}"
    left = slurm_cluster.command("squeue", "--noheader", "--states=PD,R", "--format=%F", name).split()
    assert left == [handles[0].partition(".")[0]]
    await runners[0].cancel(handles[0])


async def test_a_job_that_slurm_will_never_take_is_refused(
    make_runner: MakeRunner, backend: str, order: Order
) -> None:
    runner = make_runner(backend, slurm_events_per_part=1, slurm_maximum_parts=MAX_ARRAY_SIZE + 1)
    with pytest.raises(RunnerRefused, match="Invalid job array specification"):
        await runner.submit(order(events=MAX_ARRAY_SIZE + 1))


async def test_what_an_operator_can_mend_is_tried_again(
    make_runner: MakeRunner, backend: str, order: Order
) -> None:
    job = order()
    with unavailable("rejected the job", operators="[Ii]nvalid partition"):
        await make_runner(backend, slurm_partition="absent").submit(job)
    mended = make_runner(backend, slurm_partition="debug")
    assert await mended.find(job.request_id) is None
    assert (await reaches(mended, await mended.submit(job))).state == JobState.COMPLETED


async def test_a_job_keeps_its_parts_when_settings_change(
    make_runner: MakeRunner, order: Order, tmp_path: Path
) -> None:
    job = order(events=10)
    with pytest.raises(RunnerUnavailable):
        await make_runner(slurm_partition="absent", slurm_events_per_part=6).submit(job)
    changed = make_runner(slurm_events_per_part=1)
    handle = await changed.submit(job)
    await reaches(changed, handle)
    files = await changed.collect(handle, tmp_path / "output", 2**30)
    tables = [pq.read_table(file)["event_id"].to_pylist() for file in files]
    assert tables == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


async def test_jobs_see_nothing_of_the_servers_environment(
    make_runner: MakeRunner, backend: str, order: Order, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_TOKEN", "hunter2")
    runner = make_runner(backend)
    job = order("environment")
    await reaches(runner, await runner.submit(job))
    (log,) = (folder / job.request_id / "log").iterdir()
    names = log.read_text().split()
    assert "PATH" in names
    assert "ADMIN_TOKEN" not in names


async def test_another_job_with_the_id_is_not_taken_for_it(
    make_runner: MakeRunner, backend: str, order: Order, open_gate: Callable[[], None]
) -> None:
    """A controller that lost its state gives ids anew."""
    runner = make_runner(backend)
    handle = await runner.submit(order("gated"))
    unknown = handle.rpartition(".")[0] + "." + order().request_id
    with pytest.raises(RunnerRefused, match="does not know this job"):
        await runner.poll(unknown)
    await runner.cancel(unknown)
    open_gate()
    assert (await reaches(runner, handle)).state == JobState.COMPLETED


async def test_a_job_that_is_put_back_into_the_queue_is_followed(
    make_runner: MakeRunner, backend: str, order: Order, slurm_cluster: SlurmCluster, folder: Path
) -> None:
    """It has recorded that it was terminated, and it will run again."""
    runner = make_runner(backend)
    job = order("gated")
    handle = await runner.submit(job)
    job_id = handle.partition(".")[0]
    await until((folder / job.request_id / f".0.{job_id}_0.0").exists)
    slurm_cluster.command("scontrol", "requeue", job_id)
    await until((folder / job.request_id / "status" / f"{job_id}_0").exists)
    await reaches(runner, handle, {JobState.QUEUED})
    await runner.cancel(handle)
    assert (await reaches(runner, handle)).state == JobState.CANCELLED


async def test_many_are_asked_about_at_once(make_runner: MakeRunner, backend: str, order: Order) -> None:
    runner = make_runner(backend)
    handles = [await runner.submit(order("gated")) for _ in range(3)]
    statuses = await runner.poll_many([*handles, "nonsense"])
    assert list(statuses) == ["nonsense", *handles]
    assert isinstance(statuses["nonsense"], RunnerRefused)
    for handle in handles:
        await runner.cancel(handle)
