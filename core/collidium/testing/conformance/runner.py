"""The contract of a runner."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic
from uuid import uuid4

from collidium.contracts.runner import Job, JobState, JobStatus, Runner
from collidium.testing.conformance.promise import check_close, check_name, promise

_ENDED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})
#: Which state may follow which; any state may repeat, and ``unknown`` says nothing.
_ORDER = {JobState.QUEUED: 0, JobState.RUNNING: 1} | dict.fromkeys(_ENDED, 2)


async def check_runner(
    runner: Runner, tmp_path: Path, *, seconds: float = 120, interval: float = 0.1
) -> None:
    """Run one tiny job to its end and cancel another; ``seconds`` is the patience with each.

    ``interval`` is the time between two polls; ``tmp_path`` is an empty directory for output.
    """
    check_name(runner.name, "a runner")
    handle = await _submit_twice(runner)
    status = await _follow(runner, handle, seconds, interval)
    promise(status.state == JobState.COMPLETED, f"a job of one event must complete, not end as {status}")
    await _check_output(runner, handle, tmp_path)
    await runner.cancel(handle)  # it has ended: nothing happens
    promise((await runner.poll(handle)).state == JobState.COMPLETED, "cancel must not change a completed job")
    cancelled = await runner.submit(_job())
    await runner.cancel(cancelled)
    status = await _follow(runner, cancelled, seconds, interval)
    promise(
        status.state in {JobState.CANCELLED, JobState.COMPLETED},
        f"a cancelled job must end as cancelled (or completed, if it was faster), not {status}",
    )
    await check_close(runner)


def _job() -> Job:
    return Job(request_id=uuid4().hex, channel="single_muon", events=1, pileup=0, seed=42)


async def _submit_twice(runner: Runner) -> str:
    job = _job()
    handle, again = await asyncio.gather(runner.submit(job), runner.submit(job))
    promise(handle == again, f"submitting one request twice must give one job, not {handle!r} and {again!r}")
    return handle


async def _follow(runner: Runner, handle: str, seconds: float, interval: float) -> JobStatus:
    deadline = monotonic() + seconds
    reached = 0
    while True:
        status = await runner.poll(handle)
        promise(status.node_hours >= 0, f"node_hours must be finite and not negative: {status}")
        order = _ORDER.get(status.state, reached)
        promise(order >= reached, f"a job must not go back to {status.state}")
        reached = order
        if status.state in _ENDED:
            return status
        promise(monotonic() < deadline, f"the job is still {status.state} after {seconds:.0f} s")
        await asyncio.sleep(interval)


async def _check_output(runner: Runner, handle: str, tmp_path: Path) -> None:
    files = await runner.collect(handle, tmp_path)
    promise(bool(files), "a completed job must have output")
    promise(all(_lies_in(file, tmp_path) for file in files), f"collect must write below {tmp_path}: {files}")


def _lies_in(file: Path, directory: Path) -> bool:
    return file.is_file() and file.resolve().is_relative_to(directory.resolve())
