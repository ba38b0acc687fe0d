"""A runner whose jobs lie in files: any process follows them, none takes them along when it dies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.runner import Job, JobState, JobStatus, Runner, RunnerRefused

#: How the jobs of a channel end; the others complete.
FATES: Final[Mapping[str, JobState]] = {"zee": JobState.FAILED, "jets": JobState.RUNNING}
TABLES: Final = ("particles", "tracker_hits")
ENDED: Final = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class Filed(Runner):
    """Jobs end at their first poll as ``FATES`` says, or run until they are cancelled.

    A file ``<request_id>.job`` in ``directory`` holds a job's state.
    """

    name = "filed"
    poll_seconds = 0.02

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def states(self) -> dict[str, JobState]:
        """Every job's state by its request."""
        jobs = self.directory.glob("*.job")
        return {path.stem: JobState(json.loads(path.read_text())["state"]) for path in jobs}

    async def submit(self, job: Job) -> str:
        if not self._path(job.request_id).exists():
            self._write(job.request_id, job.channel, job.events, JobState.QUEUED)
        return job.request_id

    async def find(self, request_id: str) -> str | None:
        return request_id if self._path(request_id).exists() else None

    async def poll(self, handle: str) -> JobStatus:
        channel, events, state = self._read(handle)
        if state == JobState.QUEUED:
            state = FATES.get(channel, JobState.COMPLETED)
            self._write(handle, channel, events, state)
        return JobStatus(state, Decimal("0.001"))

    async def cancel(self, handle: str) -> None:
        channel, events, state = self._read(handle)
        if state not in ENDED:
            self._write(handle, channel, events, JobState.CANCELLED)

    async def collect(self, handle: str, directory: Path, max_bytes: int) -> list[Path]:
        _, events, _ = self._read(handle)
        files = [directory / f"{table}.parquet" for table in TABLES]
        for file in files:
            table = {
                "event_id": pa.array(range(events), pa.uint32()),
                "x": pa.array([[float(event), 1.0] for event in range(events)], pa.list_(pa.float32())),
            }
            pq.write_table(pa.table(table), file)
        return files

    async def close(self) -> None:
        """Nothing is open."""

    def _path(self, handle: str) -> Path:
        return self.directory / f"{handle}.job"

    def _read(self, handle: str) -> tuple[str, int, JobState]:
        try:
            job = json.loads(self._path(handle).read_text())
        except FileNotFoundError:
            raise RunnerRefused(f"there is no job {handle}") from None
        return job["channel"], job["events"], JobState(job["state"])

    def _write(self, handle: str, channel: str, events: int, state: JobState) -> None:
        written = self._path(handle).with_suffix(".new")
        written.write_text(json.dumps({"channel": channel, "events": events, "state": state}))
        written.replace(self._path(handle))
