"""Cards of the listed tasks, with what only this backend knows: truth, floors, rewards."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from collidium.benchmarks.rewards import floor_of, reward_of
from collidium.benchmarks.submissions.submitting import largest_against
from collidium.benchmarks.tasks import tasklist
from collidium.benchmarks.truth import truth_versions
from collidium.contracts.task import Column, EventRange, Task
from collidium.scoring.parts import Part

if TYPE_CHECKING:
    from collidium.benchmarks.tasks.tasklist import TaskStatus
    from collidium.platform import Platform


@dataclass(frozen=True, slots=True)
class ListedMetric:
    """A metric, the credits for a new best, and what a first best must beat."""

    name: str
    higher_is_better: bool
    description: str
    reward: Decimal
    floor: float
    self_reported: bool
    missing_when: str
    formula: str
    source: str


@dataclass(frozen=True, slots=True)
class ListedCard:
    """A task as this backend offers it: dataset and events are those of its truth, where there is one."""

    name: str
    title: str
    description: str
    dataset: str
    eval_events: EventRange
    inputs: tuple[str, ...]
    columns: tuple[Column, ...]
    metrics: tuple[ListedMetric, ...]
    primary_metric: str
    left_out: str
    pareto: tuple[str, str] | None
    scorer_version: str
    truth_version: str | None
    #: Which part of the events counts, and how much of them is public; None where they are not split.
    phase: Literal["public", "final"] | None
    public_percent: int | None
    accepts_submissions: bool
    #: Bytes that a file of predictions may have; None while there is no truth.
    largest_file_bytes: int | None


async def listed_cards(platform: Platform) -> list[ListedCard]:
    """The cards of all tasks that are listed and installed."""
    statuses = await tasklist.list_tasks(platform)
    return [await card_of(platform, status) for status in statuses if status.listed and status.installed]


async def listed_card(platform: Platform, name: str) -> ListedCard:
    """The card of one task; raises NotFound unless it is listed and installed."""
    for status in await tasklist.list_tasks(platform):
        if status.name == name and status.listed and status.installed:
            return await card_of(platform, status)
    raise tasklist.unknown(name)


async def card_of(platform: Platform, status: TaskStatus) -> ListedCard:
    """The card of an installed task, listed or not."""
    task = platform.tasks.get(status.name)
    truth = await truth_versions.find(status.name, status.truth_version) if status.truth_version else None
    floors = truth.floors if truth else {}
    part = Part.of(status.truth_version)
    return ListedCard(
        name=task.card.name,
        title=task.card.title,
        description=task.card.description,
        dataset=truth.dataset if truth else task.card.dataset,
        eval_events=truth.events if truth else task.card.eval_events,
        inputs=task.card.inputs,
        columns=task.card.columns,
        metrics=_metrics(task, floors, platform.settings.benchmark_reward),
        primary_metric=task.card.primary_metric.name,
        left_out=task.card.left_out,
        pareto=task.card.pareto,
        scorer_version=task.version,
        truth_version=status.truth_version,
        phase=part.kind if part else None,
        public_percent=part.public_percent if part else None,
        accepts_submissions=status.reason is None,
        largest_file_bytes=largest_against(task, truth, platform.settings) if truth else None,
    )


def _metrics(task: Task, floors: dict[str, float], default_reward: Decimal) -> tuple[ListedMetric, ...]:
    return tuple(
        ListedMetric(
            name=metric.name,
            higher_is_better=metric.higher_is_better,
            description=metric.description,
            reward=reward_of(metric, default_reward),
            floor=floor_of(metric, floors),
            self_reported=metric.self_reported,
            missing_when=metric.missing_when,
            formula=metric.formula,
            source=metric.source,
        )
        for metric in task.card.metrics
    )
