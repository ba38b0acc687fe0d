"""Parses the output of Slurm: lines of squeue and sacct, jobs of the REST API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from collidium_runners.slurm.backend import ReportedTask

#: Fields of ``squeue --Format``, each ended by a bar. The name comes last: it alone is written by people.
SQUEUE_FORMAT: Final = ",".join(
    f"{field}:|"
    for field in ("ArrayJobID", "ArrayTaskID", "State", "TimeUsed", "NumNodes", "exit_code", "Reason", "Name")
)
#: Fields of ``sacct --parsable2 --format``.
SACCT_FORMAT: Final = "JobID,State,ElapsedRaw,AllocNodes,ExitCode,JobName"
#: No id, count or time is as large.
_TOO_MUCH: Final = 1e15


def squeue_tasks(printed: str) -> Iterator[ReportedTask]:
    """Tasks from the lines of squeue; lines of another shape are left out."""
    for line in printed.splitlines():
        fields = line.split("|")
        if len(fields) != 9 or not _number(fields[0]):
            continue
        job_id, index, state, used, nodes, wait_status, reason, name, _ = fields
        yield ReportedTask(
            int(job_id),
            name,
            int(index) if index.isdecimal() else None,
            (state,),
            seconds(used) * _number(nodes),
            _number(wait_status),
            reason,
        )


def sacct_tasks(printed: str) -> Iterator[ReportedTask]:
    """Tasks from the lines of sacct: ``12_0|TIMEOUT|60|1|0:0|name``, ``12_[3-5]|CANCELLED by 0|…``."""
    for line in printed.splitlines():
        fields = line.split("|")
        job_id, _, index = fields[0].partition("_")
        if len(fields) != 6 or not _number(job_id):
            continue
        _, state, elapsed, nodes, exit_code, name = fields
        code, _, killer = exit_code.partition(":")
        yield ReportedTask(
            int(job_id),
            name,
            int(index) if index.isdecimal() else None,
            (state.split(" ")[0],),
            float(_number(elapsed) * _number(nodes)),
            _number(code) * 256 + _number(killer),
        )


def seconds(value: str) -> float:
    """``SS``, ``MM:SS``, ``HH:MM:SS`` or ``D-HH:MM:SS`` in seconds; 0 for anything else, as ``INVALID``."""
    days, _, clock = value.rpartition("-")
    try:
        parts = [int(part) for part in clock.split(":")]
        total = int(days or 0)
    except ValueError:
        return 0.0
    return float(total * 86_400 + sum(part * 60**power for power, part in enumerate(reversed(parts))))


def rest_tasks(jobs: Sequence[object], now: float) -> Iterator[ReportedTask]:
    """Tasks from ``jobs`` of the REST API, of which versions write numbers and states in several ways.

    ``now`` is the time, in seconds since 1970, up to which running tasks have used their nodes.
    """
    for job in jobs:
        if isinstance(job, Mapping) and (value := _rest_number(job.get("job_id"))) is not None:
            job_id = _rest_number(job.get("array_job_id")) or value
            index = _rest_number(job.get("array_task_id"))
            yield ReportedTask(
                int(job_id),
                str(job.get("name") or ""),
                None if index is None else int(index),
                _words(job.get("job_state")),
                _node_seconds(job, now),
                _wait_status(job.get("exit_code")),
                str(job.get("state_reason") or ""),
            )


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _node_seconds(job: Mapping[str, Any], now: float) -> float:
    """Start and end are what is planned until it happens."""
    began = _rest_number(job.get("start_time")) or 0
    ended = _rest_number(job.get("end_time")) or 0
    if "PENDING" in _words(job.get("job_state")) or not began:
        return 0.0
    until = min(ended or now, now)
    return max(until - began, 0.0) * (_rest_number(job.get("node_count")) or 0)


def _wait_status(value: object) -> int:
    if isinstance(value, Mapping):
        killer = value.get("signal")
        by = _rest_number(killer.get("id", killer.get("signal_id"))) if isinstance(killer, Mapping) else 0
        return int(_rest_number(value.get("return_code")) or 0) * 256 + int(by or 0)
    return int(_rest_number(value) or 0)


def _rest_number(value: object) -> float | None:
    """``5``, or ``{"set": true, "infinite": false, "number": 5}``; None where there is none."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") else None
    # What Python reads as infinity or as no number is no count and no time either.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _TOO_MUCH:
        return value
    return None


def _number(value: str) -> int:
    return int(value) if value.isdecimal() and len(value) < 16 else 0
