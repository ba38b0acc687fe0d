"""Credits for new bests. Called in the transaction that keeps a submission, with the task's row locked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from collidium import accounts
from collidium.benchmarks.models import Best, Submission
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
    card: Card, submission: Submission, floors: Mapping[str, float], default_reward: Decimal
) -> Decimal:
    """Raise every best that the submission beats, pay for it, and return the credits earned.

    A best is beaten by a strictly larger finite value, on a metric whose higher_is_better is true; where
    there is none yet, the task's floor (its naive baseline) must be beaten, and zero.
    """
    bests = {
        best.metric: best
        for best in await Best.filter(task=submission.task, truth_version=submission.truth_version)
    }
    earned = Decimal(0)
    for metric in card.metrics:
        value = submission.scores.get(metric.name)
        if not metric.higher_is_better or value is None or not math.isfinite(value):
            continue
        best = bests.get(metric.name)
        if value <= (best.value if best else floor_of(metric, floors)):
            continue
        await _raise_best(best, submission, metric.name, value)
        reward = reward_of(metric, default_reward)
        await _pay(submission, metric.name, reward)
        earned += reward
    return earned


async def _raise_best(best: Best | None, submission: Submission, metric: str, value: float) -> None:
    if best is None:
        best = Best(task=submission.task, truth_version=submission.truth_version, metric=metric)
    best.value = value
    best.submission_id = submission.id
    await best.save()


async def _pay(submission: Submission, metric: str, reward: Decimal) -> None:
    if reward:
        await accounts.post(
            submission.account_id,
            reward,
            reason="benchmark_best",
            reference=f"{submission.id}:{metric}",
            note=f"{submission.task}: best {metric}",
        )
