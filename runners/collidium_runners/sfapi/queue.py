"""Queries for many jobs in one call, and the parsing of rows of sacct and squeue."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from collidium.contracts.runner import JobState, RunnerError, RunnerUnavailable
from collidium_runners.batch.states import ArrayTaskStatus, state_of
from collidium_runners.command import job_name
from collidium_runners.sfapi.client import TOO_LONG, ApiClient, BadAnswer

logger = logging.getLogger(__name__)

#: Maximum number of job ids in a call: they make a URL of 8 kB, which servers accept.
IDS_PER_CALL: Final = 600
#: Maximum number of array tasks of the jobs in a call: each is a row of up to 3 kB.
TASKS_PER_CALL: Final = 1500
#: Maximum number of concurrent calls.
CALLS_AT_ONCE: Final = 16
#: How far back jobs are searched by name; longer than any request waits and runs.
LOOK_BACK: Final = timedelta(days=30)

Row = Mapping[str, Any]
#: Tasks of a job by index.
Tasks = dict[int, ArrayTaskStatus]


class QueuedJobs:
    """The jobs of one machine."""

    def __init__(self, client: ApiClient, machine: str) -> None:
        self._client = client
        self._machine = machine
        self._turns = asyncio.Semaphore(CALLS_AT_ONCE)

    async def tasks(self, jobs: Mapping[int, int]) -> dict[int, Tasks | RunnerError]:
        """Return the tasks of each job, or an error; unknown jobs are absent.

        ``jobs`` has the number of tasks by job id.
        """
        found: dict[int, Tasks | RunnerError] = {}
        for tasks in await asyncio.gather(*map(self._of_chunk, _chunks(jobs))):
            found |= tasks
        return found

    async def of_request(self, request_id: str) -> dict[int, Tasks]:
        """Return the tasks of all jobs that were submitted for a request, by job id."""
        name = job_name(request_id)
        since = (datetime.now(UTC) - LOOK_BACK).strftime("%Y-%m-%d")
        # New jobs are in the queue at once, and in the accounting later.
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
        wanted = set(job_ids)
        known = await self._by_id(wanted, accounting=True)
        if missing := wanted - known.keys():
            known |= await self._by_id(missing, accounting=False)
        return known

    async def _by_id(self, job_ids: set[int], *, accounting: bool) -> dict[int, Tasks]:
        rows = await self._rows(["jobid=" + ",".join(map(str, sorted(job_ids)))], accounting=accounting)
        return {job: tasks for job, tasks in by_job(rows).items() if job in job_ids}

    async def _rows(self, kwargs: list[str], *, accounting: bool) -> list[Row]:
        params = {"sacct": accounting, "cached": False, "kwargs": kwargs}
        response = await self._client.get(f"compute/jobs/{self._machine}", params)
        try:
            data = response.json()
        except ValueError:
            data = None
        rows = data.get("output") if isinstance(data, dict) and data.get("status") == "OK" else None
        if not isinstance(rows, list):
            raise RunnerUnavailable("the batch API's response to a query of jobs is invalid")
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
    """Merge tasks; those of the accounting replace those of the queue."""
    return {job: queued.get(job, {}) | ended.get(job, {}) for job in queued.keys() | ended.keys()}


#: ``123_4`` is a task, ``123_[5-9,12%3]`` all waiting tasks. Slurm shortens a long list with dots. Indices
#: have up to four digits, ten times the maximum number of parts.
_TASK: Final = re.compile(
    r"(?P<job>\d{1,18})_(?:(?P<index>\d{1,4})|\[(?P<several>[\d,-]{1,10000})\.*(?:%\d+)?\])", re.ASCII
)
_RANGE: Final = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?", re.ASCII)
_NO_REASON: Final = frozenset({"", "None", "Unknown"})

#: Unknown states that were logged, so that each is logged once.
_unknown_states: set[str] = set()


def named(rows: Iterable[Row], name: str) -> list[Row]:
    """Return the rows of jobs with exactly this name, as the batch system may ignore the filter."""
    return [row for row in rows if name in (row.get("jobname"), row.get("name"))]


def by_job(rows: Iterable[Row]) -> dict[int, dict[int, ArrayTaskStatus]]:
    """Return the tasks of each job by index.

    A requeued task has several rows, of which the latest counts. Rows of job steps and invalid rows are
    ignored.
    """
    jobs: dict[int, dict[int, ArrayTaskStatus]] = {}
    for row in sorted(rows, key=_moment):
        if match := _TASK.fullmatch(_text(row, "jobid")):
            for index in _indices(match):
                jobs.setdefault(int(match["job"]), {})[index] = _status(row, index)
    return jobs


def _moment(row: Row) -> tuple[str, str]:
    """Return the times of submission and start; ``Unknown`` sorts after all dates, as it should."""
    return _text(row, "submit"), _text(row, "start")


def _indices(match: re.Match[str]) -> set[int]:
    if match["index"] is not None:
        return {int(match["index"])}
    indices: set[int] = set()
    for item in match["several"].strip(",-").split(","):
        if found := _RANGE.fullmatch(item):
            indices.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return indices


def _status(row: Row, index: int) -> ArrayTaskStatus:
    data = _text(row, "state")
    state = state_of(data)
    return ArrayTaskStatus(index, state, _node_seconds(row), _reason(row, state, data))


def _node_seconds(row: Row) -> float | None:
    seconds, nodes = _text(row, "elapsedraw"), _text(row, "nnodes")
    if not seconds.isdecimal():
        return None
    return float(seconds) * (int(nodes) if nodes.isdecimal() and int(nodes) else 1)


def _reason(row: Row, state: JobState, data: str) -> str | None:
    if state == JobState.UNKNOWN:
        return f"the batch system reports {_logged_once(data)!r}"
    if state == JobState.QUEUED:
        waiting = _text(row, "reason")
        return None if waiting in _NO_REASON else f"waiting: {waiting[:64]}"
    if state == JobState.FAILED:
        code = _text(row, "exitcode").partition(":")[0]
        word = data.split()[0].lower().replace("_", " ")
        return f"exit code {code}" if word == "failed" and code not in ("", "0") else word
    return "cancelled" if state == JobState.CANCELLED else None


def _logged_once(data: str) -> str:
    shown = data[:40]
    if shown not in _unknown_states and len(_unknown_states) < 100:
        _unknown_states.add(shown)
        logger.warning("a job has a state that is unknown to this release; it is still followed: %r", shown)
    return shown


def _text(row: Row, key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else "" if value is None else str(value)
