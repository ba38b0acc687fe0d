"""Rewards for new bests, decided in the transaction that keeps a submission, under the challenge's lock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium import accounts
from collidium.benchmarks.models import Best, Submission
from collidium.benchmarks.submissions import scorings
from collidium.contracts.task import Card, Metric
from collidium.scoring.truth.versions import is_public, whole
from collidium.scoring.uncertainty import Replicates, standard_error_of_gain

if TYPE_CHECKING:
    from collidium.settings import Settings


@dataclass(frozen=True, slots=True)
class RewardRules:
    """The settings of rewards."""

    #: Credits for a new best, unless the task sets a reward.
    default: Decimal
    #: Maximum rewards of an account per metric of a challenge and UTC day.
    per_day: int
    #: A gain is paid if it exceeds this many of its standard errors.
    significance: float

    @classmethod
    def of(cls, settings: Settings, truth_version: str, *, rewarded: bool = True) -> RewardRules:
        """The rules for bests against a truth; a public part earns nothing."""
        per_day = settings.rewards_per_day if rewarded and not is_public(truth_version) else 0
        return cls(settings.benchmark_reward, per_day, settings.reward_significance)


def reward_of(metric: Metric, default: Decimal) -> Decimal:
    """Credits for a new best: the task's reward, or the platform's; none if lower is better."""
    if not metric.higher_is_better:
        return Decimal(0)
    return default if metric.reward is None else Decimal(metric.reward)


def floor_of(metric: Metric, floors: Mapping[str, float]) -> float:
    """The value that a first best must exceed: the maximum of the naive baseline's and zero."""
    return max(0.0, floors.get(metric.name, 0.0))


async def _rewards_today(submission: Submission, metrics: Iterable[str]) -> dict[str, int]:
    """Count the rewards for each metric of what the account submitted to the challenge on that UTC day."""
    midnight = midnight_before(submission.submitted_at)
    ids = await Submission.filter(
        account_id=submission.account_id,
        challenge=submission.challenge,
        submitted_at__gte=midnight,
        submitted_at__lt=midnight + timedelta(days=1),
        credits_earned__gt=0,
    ).values_list("id", flat=True)
    return {
        metric: await accounts.count_entries(
            submission.account_id, "benchmark_best", [_reference(str(id_), metric) for id_ in ids]
        )
        for metric in metrics
    }


def _reference(submission_id: str, metric: str) -> str:
    """Return the reference of a reward's ledger entry."""
    return f"{submission_id}:{metric}"


async def reward_bests(
    card: Card,
    submission: Submission,
    floors: Mapping[str, float],
    replicates: Replicates,
    rules: RewardRules,
) -> Decimal:
    """Raise every best that the submission beats, pay for it by ``rules``, and return the credits earned.

    A best is beaten by a strictly larger finite value of a metric with ``higher_is_better``; the first best
    must exceed :func:`floor_of`. Bests are also raised if they are not paid. Self-reported metrics count once
    the submission is verified. Submissions without a rank hold no bests, and the platform's own baselines
    earn nothing. ``replicates`` are those of the submission.
    """
    if submission.rank_score is None:
        return Decimal(0)
    believed = [m for m in card.metrics if not m.self_reported or submission.verified_at is not None]
    gains = [gain for metric in believed if (gain := await _raise_best(metric, submission, floors))]
    paid_today = await _rewards_today(submission, [gain.metric.name for gain in gains])
    earned = Decimal(0)
    for gain in () if submission.baseline else gains:
        name = gain.metric.name
        if paid_today[name] < rules.per_day and await _is_significant(
            gain, submission, replicates, rules.significance
        ):
            earned += await _pay(submission, name, reward_of(gain.metric, rules.default))
    return earned


@dataclass(frozen=True, slots=True)
class _Gain:
    """The gain over a best; ``beaten`` is the submission that held it, None for a floor."""

    metric: Metric
    value: float
    beaten: str | None


async def _raise_best(metric: Metric, submission: Submission, floors: Mapping[str, float]) -> _Gain | None:
    """Raise a best if the submission beats it."""
    value = submission.scores.get(metric.name)
    if not metric.higher_is_better or value is None or not math.isfinite(value):
        return None
    challenge, truth_version = submission.challenge, submission.truth_version
    best = await Best.get_or_none(challenge=challenge, truth_version=truth_version, metric=metric.name)
    before = best.value if best else floor_of(metric, floors)
    if value <= before:
        return None
    gain = _Gain(metric, value - before, best.submission_id if best else None)
    best = best or Best(challenge=challenge, truth_version=truth_version, metric=metric.name)
    best.value = value
    best.submission_id = submission.id
    await best.save()
    return gain


async def _is_significant(
    gain: _Gain, submission: Submission, replicates: Replicates, significance: float
) -> bool:
    """Whether a gain exceeds this many of its standard errors; False if these are unknown."""
    if not significance:
        return True
    name = gain.metric.name
    if name not in replicates:
        return False
    beaten: Replicates = {}
    if gain.beaten is not None:
        versions = submission.scorer_version, submission.truth_version
        beaten = await scorings.replicates_of(gain.beaten, *versions)
    return gain.value > significance * standard_error_of_gain(replicates[name], beaten.get(name, ()))


async def _pay(submission: Submission, metric: str, reward: Decimal) -> Decimal:
    """Pay unless this submission, or one that lost its rank, was paid for the metric; returns the credits."""
    reference = _reference(submission.id, metric)
    # Submissions that lost their rank hold no bests but may have kept credits for the same gain.
    lost = await Submission.filter(
        account_id=submission.account_id,
        challenge=submission.challenge,
        truth_version__startswith=whole(submission.truth_version),
        rank_score__isnull=True,
        credits_earned__gt=0,
    ).values_list("id", flat=True)
    paid = [reference, *(_reference(str(id_), metric) for id_ in lost)]
    if not reward or await accounts.count_entries(submission.account_id, "benchmark_best", paid):
        return Decimal(0)
    await accounts.post(
        submission.account_id,
        reward,
        reason="benchmark_best",
        reference=reference,
        note=f"{submission.challenge}: best {metric}",
    )
    return reward


async def take_back(submission: Submission) -> None:
    """Take back what a submission earned, down to a balance of zero.

    Within the transaction that disqualifies it and has locked the account.
    """
    balance = (await accounts.find(submission.hub_username)).credits
    amount = min(submission.credits_earned, balance)
    if amount > 0:
        reference, note = (
            _reference(submission.id, f"taken back at {now():%Y-%m-%d %H:%M:%S}"),
            "disqualified",
        )
        await accounts.post(
            submission.account_id, -amount, reason="benchmark_best", reference=reference, note=note
        )
        submission.credits_earned -= amount
        await submission.save(update_fields=["credits_earned"])


def midnight_before(moment: datetime) -> datetime:
    """Return the beginning of the UTC day."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
