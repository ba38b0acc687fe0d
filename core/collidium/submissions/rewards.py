"""Rewards for new bests, decided in the transaction that keeps a submission, under the challenge's lock."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium import accounts
from collidium.challenges import Challenge, tasklist
from collidium.contracts.task import Card, Metric
from collidium.database import in_chunks
from collidium.scoring.uncertainty import Replicates
from collidium.submissions import scores
from collidium.submissions.models import Best, Submission

if TYPE_CHECKING:
    from collidium.scoring.truth.parts import ScoredTruth
    from collidium.settings import Settings
    from collidium.truth.registry import TruthRecord


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
    def of(cls, settings: Settings, truth_version: ScoredTruth, *, rewarded: bool = True) -> RewardRules:
        """The rules for bests against a truth; a public part earns nothing."""
        per_day = settings.rewards_per_day if rewarded and not truth_version.is_public else 0
        return cls(settings.benchmark_reward, per_day, settings.reward_significance)


def is_paid(settings: Settings, challenge: Challenge, truth: TruthRecord) -> bool:
    """Whether a challenge pays for new bests against a truth: not where everybody can read it, by default."""
    return challenge.rewarded and (settings.pays_on_public_truth or not truth.is_published)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain over a best; ``beaten`` is the submission that held it, None for a floor."""

    metric: Metric
    value: float
    beaten: str | None


class Bests:
    """The best value of each metric of a leaderboard that pays for it, as submissions are added in order."""

    def __init__(self, card: Card, floors: Mapping[str, float], held: Iterable[Best] = ()) -> None:
        self._metrics = [metric for metric in card.metrics if metric.higher_is_better]
        self._floors = {metric.name: tasklist.floor_of(metric, floors) for metric in self._metrics}
        #: Value and submission of each best.
        self.held: dict[str, tuple[float, str]] = {row.metric: (row.value, row.submission_id) for row in held}

    def add(self, submission_id: str, scores: Mapping[str, float], *, verified: bool) -> list[Gain]:
        """Raise every best that a ranked submission beats, and return the gains.

        A best is beaten by a strictly larger finite value; the first one must exceed :func:`floor_of`.
        Self-reported metrics count once the submission is verified.
        """
        gains = []
        for metric in self._metrics:
            name = metric.name
            value = scores.get(name)
            if value is None or not math.isfinite(value) or (metric.self_reported and not verified):
                continue
            before, beaten = self.held.get(name, (self._floors[name], None))
            if value > before:
                self.held[name] = value, submission_id
                gains.append(Gain(metric, value - before, beaten))
        return gains


async def reward_bests(
    card: Card,
    submission: Submission,
    floors: Mapping[str, float],
    replicates: Replicates,
    rules: RewardRules,
) -> Decimal:
    """Raise every best that the submission beats, pay for it by ``rules``, and return the credits earned.

    Bests are also raised if they are not paid. Submissions without a rank hold no bests. ``replicates`` are
    those of the submission.
    """
    if submission.rank_score is None:
        return Decimal(0)
    rows = await Best.filter(challenge=submission.challenge, truth_version=submission.truth_version)
    bests = Bests(card, floors, rows)
    gains = bests.add(submission.id, submission.scores, verified=submission.verified_at is not None)
    submission.raised_best = bool(gains)
    for gain in gains:
        await Best.update_or_create(
            {"value": bests.held[gain.metric.name][0], "submission_id": submission.id},
            challenge=submission.challenge,
            truth_version=submission.truth_version,
            metric=gain.metric.name,
        )
    paid = await Paid.of(submission.challenge, [submission.account_id] if gains and rules.per_day else [])
    return await pay(submission, gains, rules, paid, replicates)


async def pay(
    submission: Submission,
    gains: Sequence[Gain],
    rules: RewardRules,
    paid: Paid,
    replicates: Replicates | None = None,
) -> Decimal:
    """Pay for the gains of a submission by ``rules``, and return the credits.

    Nothing is paid to the platform's own baselines, nor again for what was ``paid``. ``replicates`` are read
    where they are needed if they are not given.
    """
    earned = Decimal(0)
    for gain in () if submission.baseline else gains:
        name, price = gain.metric.name, tasklist.reward_of(gain.metric, rules.default)
        if not price or paid.forbids(submission, name, rules.per_day):
            continue
        if not await _is_significant(gain, submission, replicates, rules.significance):
            continue
        await accounts.post(
            submission.account_id,
            price,
            reason="benchmark_best",
            reference=_reference(submission.id, name),
            note=f"{submission.challenge}: best {name}",
        )
        paid.add(submission, name)
        earned += price
    return earned


def _reference(submission_id: str, metric: str) -> str:
    """Return the reference of a reward's ledger entry."""
    return f"{submission_id}:{metric}"


class Paid:
    """What accounts were paid for in a challenge."""

    def __init__(self, references: set[tuple[int, str]], earning: Iterable[Submission]) -> None:
        self._references = references
        #: By account, its submissions that earned credits, by id.
        self._earning: dict[int, dict[str, Submission]] = {}
        for row in earning:
            self._earning.setdefault(row.account_id, {})[row.id] = row

    @classmethod
    async def of(cls, challenge: str, account_ids: Collection[int]) -> Paid:
        """Read it for some accounts."""
        earning: list[Submission] = []
        for ids in in_chunks(account_ids):
            rows = Submission.filter(account_id__in=ids, challenge=challenge, credits_earned__gt=0)
            earning += await rows.only("id", "account_id", "submitted_at", "truth_version", "rank_score")
        return cls(await accounts.references(account_ids, "benchmark_best"), earning)

    def add(self, submission: Submission, metric: str) -> None:
        """Add a reward."""
        self._references.add((submission.account_id, _reference(submission.id, metric)))
        self._earning.setdefault(submission.account_id, {})[submission.id] = submission

    def forbids(self, submission: Submission, metric: str, per_day: int) -> bool:
        """Whether a gain of the metric was paid, or as many of the account on that UTC day as allowed.

        A submission that lost its rank holds no best but may have kept credits for the same gain.
        """
        midnight, truth = midnight_before(submission.submitted_at), submission.truth_version.whole
        today, same = 0, self._is_paid(submission, metric)
        for row in self._earning.get(submission.account_id, {}).values():
            if self._is_paid(row, metric):
                today += midnight <= row.submitted_at < midnight + timedelta(days=1)
                same = same or (row.rank_score is None and row.truth_version.whole == truth)
        return same or today >= per_day

    def _is_paid(self, submission: Submission, metric: str) -> bool:
        return (submission.account_id, _reference(submission.id, metric)) in self._references


async def _is_significant(
    gain: Gain, submission: Submission, replicates: Replicates | None, significance: float
) -> bool:
    """Whether a gain exceeds this many of its standard errors; False if these are unknown."""
    if not significance:
        return True
    name, versions = gain.metric.name, (submission.scorer_version, submission.truth_version)
    if replicates is None:
        replicates = await scores.replicates_of(submission.id, *versions)
    if name not in replicates:
        return False
    beaten = None
    if gain.beaten is not None:
        beaten = await scores.replicates_of(gain.beaten, *versions)
    return gain.value > significance * replicates.error_of_gain(name, beaten)


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
