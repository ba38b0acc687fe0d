"""The runner ``mock``: its jobs pass through their states and compute nothing.

For development, tests and demonstrations. ``PLATFORM_MOCK_SECONDS`` is the duration of a job, the first third
of it in the queue, and ``PLATFORM_MOCK_OUTCOME`` is its final state. Jobs are small files in the data
directory, shared by all processes of the machine.
"""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal
from pathlib import Path
from typing import ClassVar, Final

from collidium.contracts.runner import Job, JobProgress, JobState, JobStatus, Runner, RunnerRefused
from collidium.files.durable import write_once
from collidium.hookspecs import hookimpl
from collidium.settings import Settings

#: Fraction of its duration that a job is queued.
QUEUED: Final = 1 / 3

_REASONS: Final = {
    JobState.FAILED: "the mock runner is set to fail",
    JobState.CANCELLED: "the mock runner is set to cancel",
}


class MockRunner(Runner):
    """Simulates the states of jobs that take ``seconds``; their records are in ``directory``."""

    name = "mock"
    is_mock: ClassVar[bool] = True
    is_shared = False
    watched_poll_seconds = 0

    def __init__(self, directory: Path, seconds: float, outcome: str) -> None:
        self._directory = directory
        self._seconds = seconds
        self._outcome = outcome
        self.poll_seconds = max(seconds / 8, 0.05)

    async def submit(self, job: Job) -> str:
        await asyncio.to_thread(self._begin, job)
        return job.request_id

    def _begin(self, job: Job) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = {"submitted_at": time.time(), "node_seconds": job.node_seconds}
        write_once(self._file(job.request_id), json.dumps(record))

    async def find(self, request_id: str) -> str | None:
        return request_id if await asyncio.to_thread(self._file(request_id).is_file) else None

    async def poll(self, handle: str) -> JobStatus:
        return await asyncio.to_thread(self._status, handle)

    def _status(self, handle: str) -> JobStatus:
        record = self._record(handle)
        cancelled_at = self._cancelled_at(handle)
        until = time.time() if cancelled_at is None else cancelled_at
        passed = (until - record["submitted_at"]) / self._seconds if self._seconds else 1.0
        # At least 0, as the clock may have been set back.
        passed = min(max(passed, 0.0), 1.0)
        used = Decimal(record["node_seconds"] * passed / 3600).quantize(Decimal("0.001"))
        if cancelled_at is not None and passed < 1:
            return JobStatus(JobState.CANCELLED, used, "cancelled")
        if passed < QUEUED:
            return JobStatus(JobState.QUEUED, Decimal(0))
        if passed < 1 or self._outcome == "stalled":
            return JobStatus(JobState.RUNNING, used)
        state = JobState(self._outcome)
        # A completed job reports no usage, so that it costs its estimate.
        return JobStatus(state, None if state == JobState.COMPLETED else used, _REASONS.get(state))

    async def progress(self, handle: str) -> JobProgress | None:
        record = await asyncio.to_thread(self._record, handle)
        passed = (time.time() - record["submitted_at"]) / max(self._seconds, 1e-9)
        done = min(max((passed - QUEUED) / (1 - QUEUED), 0.0), 1.0)
        return JobProgress(1, 1, "playing", done, (1 - done) * (1 - QUEUED) * self._seconds)

    async def cancel(self, handle: str) -> None:
        await asyncio.to_thread(self._cancel, handle)

    def _cancel(self, handle: str) -> None:
        if self._file(handle).is_file():
            # Not the file's modification time, whose clock lags behind by some milliseconds.
            write_once(self._cancelled(handle), str(time.time()))

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        if (await self.poll(handle)).state != JobState.COMPLETED:
            raise RunnerRefused(f"job {handle} has not completed")
        return []

    async def close(self) -> None:
        """Nothing is open."""

    def _record(self, handle: str) -> dict[str, float]:
        try:
            record: dict[str, float] = json.loads(self._file(handle).read_text())
        except FileNotFoundError:
            raise RunnerRefused(f"there is no job {handle}") from None
        return record

    def _file(self, handle: str) -> Path:
        return self._directory / f"{handle}.json"

    def _cancelled_at(self, handle: str) -> float | None:
        try:
            return float(self._cancelled(handle).read_text())
        except FileNotFoundError:
            return None

    def _cancelled(self, handle: str) -> Path:
        return self._directory / f"{handle}.cancelled"


@hookimpl
def collidium_runners(settings: Settings) -> list[Runner]:
    """The mock runner."""
    return [MockRunner(settings.data_dir / "mock-jobs", settings.mock_seconds, settings.mock_outcome)]
