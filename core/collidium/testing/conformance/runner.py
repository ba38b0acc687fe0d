"""The contract of a runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.runner import Job, JobState, JobStatus, Runner, RunnerRefused
from collidium.order import Order
from collidium.testing.conformance.promise import (
    Nonconforming,
    check_close,
    check_name,
    promise,
    quietly,
    refuses,
)

#: Order of states, each of which may repeat; ``unknown`` may occur at any time.
_ORDER = {JobState.QUEUED: 0, JobState.RUNNING: 1} | {state: 2 for state in JobState if state.has_ended}
#: Enough for one event.
_MAX_BYTES = 64 * 1024**2


async def check_runner(
    runner: Runner,
    tmp_path: Path,
    *,
    another: Callable[[], Runner] | None = None,
    seconds: float = 120,
    interval: float = 0.1,
) -> None:
    """Run a small job to its end and cancel another.

    Parameters
    ----------
    runner : Runner
        The runner, which is closed afterwards.
    tmp_path : Path
        An empty directory for output.
    another : callable, optional
        Creates a second instance with the same settings, as after a restart of the server. Without it, the
        promise that handles outlive their instance is not checked.
    seconds : float
        Time limit of each job in seconds.
    interval : float
        Interval of polls in seconds.

    Raises
    ------
    Nonconforming
        If a promise of :class:`~collidium.contracts.runner.Runner` is broken.

    Examples
    --------
    ::

        async def test_my_runner_conforms(tmp_path):
            await check_runner(MyRunner(), tmp_path, another=MyRunner)
    """
    check_name(runner.name, "a runner")
    other = runner if another is None else another()
    job = _job()
    promise(await other.find(job.request_id) is None, "find of a request never submitted must give None")
    handle = await _submit_twice(runner, job)
    found = await other.find(job.request_id)
    promise(found == handle, f"find must give the handle {handle!r} in every instance, not {found!r}")
    status = await _follow(other, handle, seconds, interval)
    promise(status.state == JobState.COMPLETED, f"a job of one event must complete, not end as {status}")
    again = await other.submit(job)
    promise(handle == again, f"another instance must know the request: {handle!r}, not {again!r}")
    await _check_output(other, handle, tmp_path)
    await other.cancel(handle)
    promise((await runner.poll(handle)).state == JobState.COMPLETED, "cancel must not change a completed job")
    await _check_cancelled(runner, other, seconds, interval)
    await _check_unknown_handle(other, tmp_path)
    await _check_many(runner, handle)
    if other is not runner:
        await check_close(other)
    await check_close(runner)


def _job() -> Job:
    return Job(uuid4().hex, Order("single_muon", 1, 0), node_seconds=60)


async def _submit_twice(runner: Runner, job: Job) -> str:
    handle, again = await asyncio.gather(runner.submit(job), runner.submit(job))
    promise(handle == again, f"submitting one request twice must give one job, not {handle!r} and {again!r}")
    return handle


async def _check_cancelled(runner: Runner, other: Runner, seconds: float, interval: float) -> None:
    handle = await runner.submit(_job())
    await other.cancel(handle)
    status = await _follow(runner, handle, seconds, interval)
    promise(
        status.state in {JobState.CANCELLED, JobState.COMPLETED},
        f"a cancelled job must end as cancelled (or completed, if it was faster), not {status}",
    )


async def _check_unknown_handle(runner: Runner, tmp_path: Path) -> None:
    handle = "no-such-job"
    with refuses(RunnerRefused, "poll of an unknown handle"):
        await runner.poll(handle)
    with refuses(RunnerRefused, "collect of an unknown handle"):
        await runner.collect(handle, tmp_path, _MAX_BYTES)
    await quietly(runner.cancel(handle), "cancel of an unknown handle must do nothing")


async def _check_many(runner: Runner, handle: str) -> None:
    statuses = await runner.poll_many([handle, "no-such-job"])
    promise(statuses.get(handle) == await runner.poll(handle), "poll_many must return the same as poll")
    promise(
        isinstance(statuses.get("no-such-job"), RunnerRefused),
        f"poll_many must give RunnerRefused for an unknown handle: {statuses}",
    )


async def _follow(runner: Runner, handle: str, seconds: float, interval: float) -> JobStatus:
    deadline = monotonic() + seconds
    reached = 0
    while True:
        status = await _poll(runner, handle)
        used = status.node_hours
        promise(
            used is None or (used.is_finite() and used >= 0),
            f"node_hours must be finite and not negative, or None: {status}",
        )
        order = _ORDER.get(status.state, reached)
        promise(order >= reached, f"a job must not go back to {status.state}")
        reached = order
        if status.state.has_ended:
            return status
        promise(monotonic() < deadline, f"the job is still {status.state} after {seconds:.0f} s")
        await asyncio.sleep(interval)


async def _poll(runner: Runner, handle: str) -> JobStatus:
    try:
        return await runner.poll(handle)
    except RunnerRefused as error:
        raise Nonconforming(f"a handle must be valid in every instance, but poll raises {error!r}") from error


async def _check_output(runner: Runner, handle: str, tmp_path: Path) -> None:
    files = await runner.collect(handle, tmp_path, _MAX_BYTES)
    if runner.is_mock:
        promise(not files, f"a mock must have no output: {files}")
        return
    promise(bool(files), "a completed job must have output")
    promise(all(_lies_in(file, tmp_path) for file in files), f"collect must write below {tmp_path}: {files}")
    for file in files:
        promise(_event_ids(file) == [0], f"{file.name} must be a parquet table with a row for event 0 alone")
    with refuses(RunnerRefused, "collect of an output of more than max_bytes"):
        await runner.collect(handle, tmp_path, 1)


def _event_ids(file: Path) -> list[object] | None:
    try:
        return list(pq.read_table(file, columns=["event_id"]).column("event_id").to_pylist())
    except (pa.ArrowException, KeyError):
        return None


def _lies_in(file: Path, directory: Path) -> bool:
    return file.is_file() and file.resolve().is_relative_to(directory.resolve())
