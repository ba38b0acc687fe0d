"""Versions of truth: imported by operators, pointed to by the task list, opened to score against."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from collidium.benchmarks.models import ListedTask, TruthVersion
from collidium.contracts.task import EventRange
from collidium.errors import NotFound

if TYPE_CHECKING:
    from collidium.platform import Platform


@dataclass(frozen=True, slots=True)
class TruthRecord:
    """A version of a task's truth; ``floors`` are the naive baseline's metrics."""

    task: str
    version: str
    dataset: str
    revision: str
    events: EventRange
    floors: dict[str, float]
    imported_at: datetime
    current: bool


async def list_truths(platform: Platform) -> list[TruthRecord]:
    """Every version of every task's truth, the newest first."""
    current = {row.name: row.truth_version for row in await ListedTask.all()}
    return [_record(row, current.get(row.task)) for row in await TruthVersion.all().order_by("-id")]


async def find(task: str, version: str) -> TruthRecord:
    """One version; raises NotFound."""
    row = await TruthVersion.get_or_none(task=task, version=version)
    if row is None:
        raise NotFound(f"there is no truth {version!r} of task {task!r}")
    return _record(row, version)
