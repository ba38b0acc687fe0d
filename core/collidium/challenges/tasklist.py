"""The task list: which installed tasks accept submissions, and their cards.

A task is *installed* if a plugin provides it, and *listed* if an operator added it. Built-in tasks are listed
when they are first seen; one that an operator removes stays removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Final

from msgspec import structs
from tortoise.expressions import F
from tortoise.timezone import now

from collidium import challenges, records
from collidium.challenges import gate
from collidium.challenges.gate import Refusal
from collidium.challenges.models import Challenge
from collidium.contracts.task import Column, Task
from collidium.contracts.task import Metric as TaskMetric
from collidium.database import transactional
from collidium.errors import NotFound
from collidium.inference.sandbox import MAX_MODEL_BYTES
from collidium.platform import Platform
from collidium.plugins import DISTRIBUTION
from collidium.records import PUBLIC_TRUTH, EvalEvents, Metric, PredictionColumn, TaskCard, TaskStatus
from collidium.truth import registry
from collidium.truth.published_data import shown_data

if TYPE_CHECKING:
    from collidium.plugins import Plugins, Provided
    from collidium.settings import Settings


async def list_tasks(tasks: Provided[Task]) -> list[TaskStatus]:
    """Every task that is installed or listed, by name."""
    rows = {row.name: row for row in await Challenge.filter(name=F("task"))}
    names = sorted(set(tasks.things) | {row.name for row in rows.values() if row.listed})
    refusals = await gate.refusals_of(tasks, [*rows.values()], now())
    return [_status(tasks, name, rows.get(name), refusals.get(name)) for name in names]


async def add_task(tasks: Provided[Task], name: str) -> TaskStatus:
    """List an installed task; raises NotFound with the installed ones."""
    tasks.find(name)
    return await _status_of(tasks, name, await _set_listed(name, True))


async def remove_task(tasks: Provided[Task], name: str) -> TaskStatus:
    """Remove a task from the list; its submissions, scores and credits stay. Raises NotFound."""
    row = await challenges.find(name)
    if row is None or not row.listed or row.task != name:
        raise NotFound(f"task {name!r} is not listed")
    return await _status_of(tasks, name, await _set_listed(name, False))


@asynccontextmanager
async def open_platform(settings: Settings, loaded: Plugins | None = None) -> AsyncIterator[Platform]:
    """Open the platform (:meth:`~collidium.platform.Platform.open`), its built-in tasks listed."""
    async with Platform.open(settings, loaded) as platform:
        await _list_new_built_ins(platform.tasks)
        yield platform


async def _list_new_built_ins(tasks: Provided[Task]) -> None:
    """List built-in tasks that were never seen before."""
    own = [
        Challenge(name=name, task=name)
        for name, distribution in tasks.distributions.items()
        if distribution == DISTRIBUTION
    ]
    await Challenge.bulk_create(own, ignore_conflicts=True)


async def status_of(tasks: Provided[Task], name: str) -> TaskStatus:
    """Return the status of the task of this name, or of a challenge's task; also of an unknown one."""
    row = await challenges.find(name)
    return await _status_of(tasks, row.task if row is not None else name, row)


async def unknown(name: str) -> NotFound:
    """Return the error for a task or challenge that does not exist, or whose task is not installed."""
    row = await challenges.find(name)
    if row is not None and row.listed:
        return NotFound(f"task {row.task!r} is listed, but {gate.NOT_INSTALLED}")
    return NotFound(
        f"there is no task {await challenges.named(name)}; GET /v1/benchmark/tasks lists those there are"
    )


@transactional
async def _set_listed(name: str, listed: bool) -> Challenge:
    await Challenge.bulk_create([Challenge(name=name, task=name, listed=listed)], ignore_conflicts=True)
    row = await challenges.locked(name)
    row.listed = listed
    await row.save(update_fields=["listed", "changed_at"])
    return row


async def _status_of(tasks: Provided[Task], name: str, row: Challenge | None) -> TaskStatus:
    refusal = await gate.refusal_of(tasks, row, now()) if row is not None else None
    return _status(tasks, name, row, refusal)


#: What operators do about a reason.
_ADVICE: Final = {
    "not listed": " (collidium task add {})",
    "no truth": " (collidium truth import {} --from ...)",
}


def _status(tasks: Provided[Task], name: str, row: Challenge | None, refusal: Refusal | None) -> TaskStatus:
    if row is None:
        refusal = Refusal("not listed", "not listed")
    reason = refusal.reason + _ADVICE.get(refusal.cause, "").format(name) if refusal else None
    task = tasks.things.get(name)
    truth = row.truth_version if row is not None else None
    return TaskStatus(
        name=name,
        title=task.card.title if task else name,
        installed=task is not None,
        listed=row is not None and row.listed,
        distribution=tasks.distributions.get(name),
        scorer_version=task.version if task else None,
        truth_version=truth,
        phase=truth.kind if truth else None,
        public_percent=truth.public_percent if truth else None,
        reason=reason,
    )


async def listed_cards(platform: Platform) -> list[TaskCard]:
    """The cards of all tasks that are listed and installed."""
    statuses = await list_tasks(platform.tasks)
    return [await card_of(platform, status) for status in statuses if status.listed and status.installed]


async def listed_card(platform: Platform, name: str) -> TaskCard:
    """The card of a task, or of a challenge's; raises NotFound unless it is listed and installed."""
    row = await challenges.find(name)
    if row is None or not row.listed or row.task not in platform.tasks.things:
        raise await unknown(name)
    card = await card_of(platform, await _status_of(platform.tasks, row.task, row))
    if row.rewarded:
        return card
    unpaid = tuple(structs.replace(metric, reward=Decimal(0)) for metric in card.metrics)
    return structs.replace(card, metrics=unpaid)


async def list_challenges(platform: Platform) -> list[records.Challenge]:
    """All challenges that are listed and installed, the next to close first, those without a date last."""
    rows = [row for row in await Challenge.filter(listed=True) if row.task in platform.tasks.things]
    moment = now()
    rows.sort(key=lambda row: (row.closes_at is None, row.closes_at or moment, row.name))
    refusals = await gate.refusals_of(platform.tasks, rows, moment)
    reasons = {name: refusal.reason for name, refusal in refusals.items()}
    return [structs.replace(challenges.view(row, platform), reason=reasons.get(row.name)) for row in rows]


async def challenge_with_card(platform: Platform, name: str) -> records.Challenge:
    """A challenge that is listed, with the card of its task; raises NotFound."""
    row, card = await challenges.get(name), await listed_card(platform, name)
    return structs.replace(challenges.view(row, platform, card), reason=card.reason)


async def card_of(platform: Platform, status: TaskStatus) -> TaskCard:
    """The card of an installed task, listed or not."""
    task = platform.tasks.get(status.name)
    truth = await registry.find(status.name, status.truth_version) if status.truth_version else None
    # Floors are of all events, including those that a challenge holds back.
    held_back = truth is not None and await gate.is_held_back(status.name, truth.version)
    floors = None if held_back else truth.floors if truth else {}
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
        reason=_for_users(status),
        largest_file_bytes=registry.largest_file(task, truth, platform.settings) if truth else None,
        largest_model_bytes=MAX_MODEL_BYTES if truth and truth.inputs else None,
        model_price=platform.settings.model_price,
        truth_notes=truth.notes if truth else {},
        practice=PUBLIC_TRUTH if truth and truth.is_published else None,
        **shown_data(truth.data if truth else {}, platform.settings),
    )


def _for_users(status: TaskStatus) -> str | None:
    """The reason without what only operators can do about it."""
    reason = status.reason
    for advice in _ADVICE.values():
        reason = reason and reason.removesuffix(advice.format(status.name))
    return reason


def _column(column: Column) -> PredictionColumn:
    lowest, highest = (bound if isfinite(bound) else None for bound in column.bounds)
    return PredictionColumn.of(column, bounds=(lowest, highest))


def reward_of(metric: TaskMetric, default: Decimal) -> Decimal:
    """Credits for a new best: the task's reward, or the platform's; none if lower is better."""
    if not metric.higher_is_better:
        return Decimal(0)
    return default if metric.reward is None else Decimal(metric.reward)


def floor_of(metric: TaskMetric, floors: Mapping[str, float]) -> float:
    """The value that a first best must exceed: the maximum of the naive baseline's and zero."""
    return max(0.0, floors.get(metric.name, 0.0))


def _metrics(task: Task, floors: dict[str, float] | None, default_reward: Decimal) -> tuple[Metric, ...]:
    return tuple(
        Metric.of(
            metric,
            reward=reward_of(metric, default_reward),
            floor=None if floors is None else floor_of(metric, floors),
        )
        for metric in task.card.metrics
    )
