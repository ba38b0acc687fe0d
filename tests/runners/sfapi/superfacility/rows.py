"""Jobs as the API reports them: rows of squeue and of sacct, every value a text."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tests.runners.sfapi.superfacility.batch import Job, Task

Row = dict[str, str]


def sacct(jobs: Iterable[Job]) -> list[Row]:
    """A row per array task; those that wait have one together."""
    return [row for job in jobs for row in _of_accounting(job)]


def squeue(jobs: Iterable[Job]) -> list[Row]:
    """The same of what has not ended."""
    return [row for job in jobs for row in _of_queue(job)]


def _of_accounting(job: Job) -> list[Row]:
    rows = [_accounted(job, task, f"{job.id}_{task.index}") for task in job.tasks if task.state != "PENDING"]
    waiting = [task for task in job.tasks if task.state == "PENDING"]
    return rows + ([_accounted(job, waiting[0], _together(job, waiting))] if waiting else [])


def _accounted(job: Job, task: Task, shown: str) -> Row:
    return {
        "account": job.options.get("account", ""),
        "allocnodes": "0" if task.began is None else "1",
        "elapsed": time.strftime("%H:%M:%S", time.gmtime(task.elapsed)),
        "elapsedraw": str(task.elapsed),
        "end": _moment(task.ended),
        "exitcode": f"{task.exit_code}:0",
        "jobid": shown,
        "jobidraw": str(job.id + task.index),
        "jobname": job.name,
        "nnodes": "1",
        "qos": job.options.get("qos", ""),
        "reason": task.reason,
        "start": _moment(task.began),
        "state": task.state,
        "submit": _moment(job.submitted),
    }


def _of_queue(job: Job) -> list[Row]:
    running = [task for task in job.tasks if task.active and task.state != "PENDING"]
    waiting = [task for task in job.tasks if task.state == "PENDING"]
    rows = [_queued(job, task, str(task.index), f"{job.id}_{task.index}") for task in running]
    if waiting:
        together = _together(job, waiting)
        rows.append(_queued(job, waiting[0], together.partition("_")[2].strip("[]"), together))
    return rows


def _queued(job: Job, task: Task, index: str, shown: str) -> Row:
    return {
        "account": job.options.get("account", ""),
        "array_job_id": str(job.id),
        "array_task_id": index,
        "jobid": shown,
        "name": job.name,
        "nodes": "1",
        "reason": task.reason,
        "state": task.state,
        "time": time.strftime("%M:%S", time.gmtime(task.elapsed)),
    }


def _together(job: Job, tasks: list[Task]) -> str:
    first, last = tasks[0].index, tasks[-1].index
    gapless = last - first + 1 == len(tasks) > 1
    shown = f"{first}-{last}" if gapless else ",".join(str(task.index) for task in tasks)
    return f"{job.id}_[{shown}]"


def _moment(seconds: float | None) -> str:
    return "Unknown" if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
