"""A runner whose jobs do what a test sets, as batch systems do on bad days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.runner import Job, JobState, JobStatus, Runner, RunnerRefused
from collidium.hookspecs import hookimpl

#: What a call says: a value, or an error to raise.
Answer = JobStatus | BaseException

COMPLETED = JobStatus(JobState.COMPLETED, Decimal("0.100"))


class Scripted(Runner):
    """Jobs complete at their first poll, or poll as ``answers`` says; its last one is said for ever.

    ``submitting`` is called with each new job, and may raise. The counters record what was asked of it.
    """

    name = "scripted"
    poll_seconds = 0.02

    def __init__(self, *answers: Answer) -> None:
        self.jobs: dict[str, Job] = {}
        self.answers = list(answers) or [COMPLETED]
        self.submitting: Callable[[Job], None] = lambda job: None
        self.cancelled: set[str] = set()
        self.calls: Counter[str] = Counter()

    async def submit(self, job: Job) -> str:
        self.calls["submit"] += 1
        self.submitting(job)
        self.jobs.setdefault(job.request_id, job)
        return job.request_id

    async def find(self, request_id: str) -> str | None:
        return request_id if request_id in self.jobs else None

    async def poll(self, handle: str) -> JobStatus:
        self.calls["poll"] += 1
        if handle not in self.jobs:
            raise RunnerRefused(f"there is no job {handle}")
        if handle in self.cancelled:
            return JobStatus(JobState.CANCELLED, Decimal("0.050"))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def cancel(self, handle: str) -> None:
        self.cancelled.add(handle)

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        events = range(self.jobs[handle].events)
        file = directory / "particles.parquet"
        ids = pa.array([[event] for event in events], pa.list_(pa.uint64()))
        pq.write_table(pa.table({"event_id": pa.array(events, pa.uint32()), "particle_id": ids}), file)
        return [file]

    async def close(self) -> None:
        """Nothing is open."""


class Bringing:
    """A plugin that brings one runner."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @hookimpl
    def collidium_runners(self) -> list[Runner]:
        return [self._runner]
