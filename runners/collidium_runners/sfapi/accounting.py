"""From the rows of sacct and squeue to what became of each array task. No I/O."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from collidium.contracts.runner import JobState
from collidium_runners.batch.states import TaskStatus, state_of

logger = logging.getLogger(__name__)

Row = Mapping[str, Any]

#: ``123_4`` is a task, ``123_[5-9,12%3]`` all those that wait. Slurm cuts a long list short with dots.
#: Ten times the parts that a job may have are counted: what is beyond is nonsense.
_TASK: Final = re.compile(
    r"(?P<job>\d{1,18})_(?:(?P<index>\d{1,4})|\[(?P<several>[\d,-]{1,10000})\.*(?:%\d+)?\])", re.ASCII
)
_RANGE: Final = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?", re.ASCII)
_NO_REASON: Final = frozenset({"", "None", "Unknown"})

#: States that were logged already: once is enough.
_strange: set[str] = set()


def named(rows: Iterable[Row], name: str) -> list[Row]:
    """Those of jobs with exactly this name: a filter that the batch system may not have heeded."""
    return [row for row in rows if name in (row.get("jobname"), row.get("name"))]


def by_job(rows: Iterable[Row]) -> dict[int, dict[int, TaskStatus]]:
    """The tasks of each job by their index.

    A task of which there are several rows, because it was put back into the queue, is what its latest says.
    Rows of a job's steps, and those that make no sense, are left out.
    """
    jobs: dict[int, dict[int, TaskStatus]] = {}
    for row in sorted(rows, key=_moment):
        if match := _TASK.fullmatch(_text(row, "jobid")):
            for index in _indices(match):
                jobs.setdefault(int(match["job"]), {})[index] = _status(row, index)
    return jobs


def _moment(row: Row) -> tuple[str, str]:
    """When it was submitted and began; ``Unknown`` sorts behind every date, as what has not begun should."""
    return _text(row, "submit"), _text(row, "start")


def _indices(match: re.Match[str]) -> set[int]:
    if match["index"] is not None:
        return {int(match["index"])}
    indices: set[int] = set()
    for piece in match["several"].strip(",-").split(","):
        if found := _RANGE.fullmatch(piece):
            indices.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return indices


def _status(row: Row, index: int) -> TaskStatus:
    data = _text(row, "state")
    state = state_of(data)
    return TaskStatus(index, state, _node_seconds(row), _reason(row, state, data))


def _node_seconds(row: Row) -> float | None:
    seconds, nodes = _text(row, "elapsedraw"), _text(row, "nnodes")
    if not seconds.isdecimal():
        return None
    return float(seconds) * (int(nodes) if nodes.isdecimal() and int(nodes) else 1)


def _reason(row: Row, state: JobState, data: str) -> str | None:
    if state == JobState.UNKNOWN:
        return f"the batch system says {_known_once(data)!r}"
    if state == JobState.QUEUED:
        waiting = _text(row, "reason")
        return None if waiting in _NO_REASON else f"waiting: {waiting[:64]}"
    if state == JobState.FAILED:
        code = _text(row, "exitcode").partition(":")[0]
        word = data.split()[0].lower().replace("_", " ")
        return f"exit code {code}" if word == "failed" and code not in ("", "0") else word
    return "cancelled" if state == JobState.CANCELLED else None


def _known_once(data: str) -> str:
    shown = data[:40]
    if shown not in _strange and len(_strange) < 100:
        _strange.add(shown)
        logger.warning("a job's state is unknown to this release, and it is followed on: %r", shown)
    return shown


def _text(row: Row, key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else "" if value is None else str(value)
