"""Queries the batch system, many jobs in a call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from collidium.contracts.runner import RunnerError, RunnerUnavailable
from collidium_runners.batch.states import TaskStatus
from collidium_runners.pipeline.command import job_name
from collidium_runners.sfapi.accounting import Row, by_job, named
from collidium_runners.sfapi.client import TOO_LONG, BadAnswer, Client

#: How many jobs are asked about in a call: their ids make an address of 8 kB, which servers take.
IDS_PER_CALL: Final = 600
#: How many array tasks they may have together: each is a row of up to 3 kB.
TASKS_PER_CALL: Final = 1500
#: How many calls are under way at once.
CALLS_AT_ONCE: Final = 16
#: How far back a job is looked for by its name; longer than any request waits and runs.
LOOK_BACK: Final = timedelta(days=30)

Tasks = dict[int, TaskStatus]


class Queue:
    """The jobs of one machine."""

    def __init__(self, client: Client, machine: str) -> None:
        self._client = client
        self._machine = machine
        self._turns = asyncio.Semaphore(CALLS_AT_ONCE)

    async def tasks(self, jobs: Mapping[int, int]) -> dict[int, Tasks | RunnerError]:
        """The tasks of each job, or why they are unknown; jobs that are not known are left out.

        ``jobs`` are ids, each with how many tasks it has.
        """
        found: dict[int, Tasks | RunnerError] = {}
        for answer in await asyncio.gather(*map(self._of_chunk, _chunks(jobs))):
            found |= answer
        return found

    async def of_request(self, request_id: str) -> dict[int, Tasks]:
        """The jobs that were submitted for a request, by their ids."""
        name = job_name(request_id)
        since = (datetime.now(UTC) - LOOK_BACK).strftime("%Y-%m-%d")
        # What has not ended is at once in the queue, but only later in the accounting.
        queued = await self._rows([f"name={name}"], accounting=False)
        ended = await self._rows([f"name={name}", f"starttime={since}"], accounting=True)
        return _together(by_job(named(queued, name)), by_job(named(ended, name)))

    async def _of_chunk(self, job_ids: Sequence[int]) -> dict[int, Tasks | RunnerError]:
        try:
            async with self._turns:
                known = await self._known(job_ids)
        except BadAnswer as error:
            if error.status in TOO_LONG and len(job_ids) > 1:
                return await self._of_halves(job_ids)
            return dict.fromkeys(job_ids, error)
        except RunnerError as error:
            return dict.fromkeys(job_ids, error)
        return dict(known)

    async def _of_halves(self, job_ids: Sequence[int]) -> dict[int, Tasks | RunnerError]:
        middle = len(job_ids) // 2
        return await self._of_chunk(job_ids[:middle]) | await self._of_chunk(job_ids[middle:])

    async def _known(self, job_ids: Sequence[int]) -> dict[int, Tasks]:
        asked = set(job_ids)
        known = await self._by_id(asked, accounting=True)
        if missing := asked - known.keys():
            known |= await self._by_id(missing, accounting=False)
        return known

    async def _by_id(self, job_ids: set[int], *, accounting: bool) -> dict[int, Tasks]:
        rows = await self._rows(["jobid=" + ",".join(map(str, sorted(job_ids)))], accounting=accounting)
        return {job: tasks for job, tasks in by_job(rows).items() if job in job_ids}

    async def _rows(self, kwargs: list[str], *, accounting: bool) -> list[Row]:
        params = {"sacct": accounting, "cached": False, "kwargs": kwargs}
        answer = await self._client.get(f"compute/jobs/{self._machine}", params)
        try:
            data = answer.json()
        except ValueError:
            data = None
        rows = data.get("output") if isinstance(data, dict) and data.get("status") == "OK" else None
        if not isinstance(rows, list):
            raise RunnerUnavailable("the batch API answered a question about jobs with nonsense")
        return [row for row in rows if isinstance(row, dict)]


def _chunks(jobs: Mapping[int, int]) -> list[list[int]]:
    chunks: list[list[int]] = []
    room = 0
    for job_id, tasks in sorted(jobs.items()):
        if not chunks or len(chunks[-1]) == IDS_PER_CALL or tasks > room:
            chunks.append([])
            room = TASKS_PER_CALL
        chunks[-1].append(job_id)
        room -= tasks
    return chunks


def _together(queued: dict[int, Tasks], ended: dict[int, Tasks]) -> dict[int, Tasks]:
    """The accounting decides over the queue, although it is updated later."""
    return {job: queued.get(job, {}) | ended.get(job, {}) for job in queued.keys() | ended.keys()}
