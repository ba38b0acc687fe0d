"""Cards of the listed tasks, with what only this backend knows: truth, floors, rewards."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING

from collidium.benchmarks.admission import largest_file
from collidium.benchmarks.rewards import floor_of, reward_of
from collidium.benchmarks.tasks import tasklist
from collidium.benchmarks.truth import truth_versions
from collidium.contracts.task import Column, Task
from collidium.records import EvalEvents, Metric, PredictionColumn, TaskCard

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.records import TaskStatus


async def listed_cards(platform: Platform) -> list[TaskCard]:
    """The cards of all tasks that are listed and installed."""
    statuses = await tasklist.list_tasks(platform.tasks)
    return [await card_of(platform, status) for status in statuses if status.listed and status.installed]


async def listed_card(platform: Platform, name: str) -> TaskCard:
    """The card of one task; raises NotFound unless it is listed and installed."""
    for status in await tasklist.list_tasks(platform.tasks):
        if status.name == name and status.listed and status.installed:
            return await card_of(platform, status)
    raise tasklist.unknown(name)


async def card_of(platform: Platform, status: TaskStatus) -> TaskCard:
    """The card of an installed task, listed or not."""
    task = platform.tasks.get(status.name)
    truth = await truth_versions.find(status.name, status.truth_version) if status.truth_version else None
    floors = truth.floors if truth else {}
    return TaskCard.of(
        task.card,
        dataset=truth.dataset if truth else task.card.dataset,
        eval_events=EvalEvents.of(truth.events if truth else task.card.eval_events),
        columns=tuple(_column(column) for column in task.card.columns),
        metrics=_metrics(task, floors, platform.settings.benchmark_reward),
        primary_metric=task.card.primary_metric.name,
        scorer_version=task.version,
        truth_version=status.truth_version,
        phase=status.phase,
        public_percent=status.public_percent,
        accepts_submissions=status.reason is None,
        largest_file_bytes=largest_file(task, truth, platform.settings) if truth else None,
    )


def _column(column: Column) -> PredictionColumn:
    lowest, highest = (bound if isfinite(bound) else None for bound in column.bounds)
    return PredictionColumn.of(column, bounds=(lowest, highest))


def _metrics(task: Task, floors: dict[str, float], default_reward: Decimal) -> tuple[Metric, ...]:
    return tuple(
        Metric.of(metric, reward=reward_of(metric, default_reward), floor=floor_of(metric, floors))
        for metric in task.card.metrics
    )
