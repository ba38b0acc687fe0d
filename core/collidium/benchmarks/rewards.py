"""Credits for new bests. Called in the transaction that keeps a submission, with the task's row locked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from collidium import accounts
from collidium.benchmarks.models import Best, Submission
from collidium.benchmarks.quotas import reward_reference, rewards_today
from collidium.contracts.task import Card, Metric


def reward_of(metric: Metric, default: Decimal) -> Decimal:
    """Credits for a new best: the task's own number, else the platform's; none where lower is better."""
    if not metric.higher_is_better:
        return Decimal(0)
    return default if metric.reward is None else Decimal(metric.reward)


def floor_of(metric: Metric, floors: Mapping[str, float]) -> float:
    """What a first best must exceed: the naive baseline's value, and zero."""
    return max(0.0, floors.get(metric.name, 0.0))


async def reward_bests(
    card: Card,
    submission: Submission,
    floors: Mapping[str, float],
    *,
    default_reward: Decimal,
    per_day: int,
) -> Decimal:
    """Raise every best that the submission beats, pay for it, and return the credits earned.

    An account that was rewarded ``per_day`` times for a metric since midnight is paid no more for it that
    day; the best is raised all the same.

    A best is beaten by a strictly larger finite value, on a metric whose higher_is_better is true; where
    there is none yet, the task's floor (its naive baseline) must be beaten, and zero.
    """
    raised = [metric for metric in card.metrics if await _raise_best(metric, submission, floors)]
    paid_today = await rewards_today(submission, [metric.name for metric in raised])
    earned = Decimal(0)
    for metric in raised:
        if paid_today[metric.name] < per_day:
            reward = reward_of(metric, default_reward)
            await _pay(submission, metric.name, reward)
            earned += reward
    return earned


async def _raise_best(metric: Metric, submission: Submission, floors: Mapping[str, float]) -> bool:
    """Whether the submission beats the best of a metric, which is then its own."""
    value = submission.scores.get(metric.name)
    if not metric.higher_is_better or value is None or not math.isfinite(value):
        return False
    task, truth_version = submission.task, submission.truth_version
    best = await Best.get_or_none(task=task, truth_version=truth_version, metric=metric.name)
    if value <= (best.value if best else floor_of(metric, floors)):
        return False
    best = best or Best(task=task, truth_version=truth_version, metric=metric.name)
    best.value = value
    best.submission_id = submission.id
    await best.save()
    return True


async def _pay(submission: Submission, metric: str, reward: Decimal) -> None:
    if reward:
        await accounts.post(
            submission.account_id,
            reward,
            reason="benchmark_best",
            reference=reward_reference(submission.id, metric),
            note=f"{submission.task}: best {metric}",
        )
