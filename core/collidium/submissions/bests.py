"""Decides the bests of a leaderboard again, in the order of submission, and pays for new ones.

The cost is that of the leaderboard's scores, without replicates and curves, which are read for what is paid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from collidium import accounts
from collidium.contracts.task import Card
from collidium.database import in_chunks, loaded, rows_of
from collidium.scoring.truth.parts import ScoredTruth
from collidium.submissions.models import Best, Submission
from collidium.submissions.rewards import Bests, Gain, Paid, RewardRules, pay
from collidium.truth import registry

_RANKED: Final = """
SELECT id, scores, verified_at, raised_best FROM submissions
WHERE challenge = ? AND truth_version = ? AND rank_score IS NOT NULL ORDER BY submitted_at, id
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """The bests of a leaderboard, and the submissions that raised them, in the order of submission."""

    challenge: str
    truth_version: ScoredTruth
    held: Mapping[str, tuple[float, str]]
    gains: Mapping[str, Sequence[Gain]]
    raisers: Sequence[Submission]
    #: The ids of submissions that are wrongly known to have raised one, or not.
    wrong: Collection[str]

    @property
    def account_ids(self) -> set[int]:
        """The accounts that may be paid, which must be locked before."""
        return {row.account_id for row in self.raisers}


async def decide(challenge: str, card: Card, truth_version: ScoredTruth) -> Decision:
    """Decide the bests of a challenge's ranked submissions, under its lock; writes nothing."""
    rows = await rows_of(_RANKED, challenge, truth_version)
    bests = Bests(card, (await registry.find(card.name, truth_version)).floors)
    gains, wrong = await asyncio.to_thread(_gains, bests, rows)
    raisers = [row for ids in in_chunks(gains) for row in await Submission.filter(id__in=ids)]
    raisers.sort(key=lambda row: (row.submitted_at, row.id))
    return Decision(challenge, truth_version, bests.held, gains, raisers, wrong)


def _gains(bests: Bests, rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[Gain]], list[str]]:
    gains, wrong = dict[str, list[Gain]](), list[str]()
    for row in rows:
        scores = loaded(Submission, "scores", row["scores"])
        if found := bests.add(row["id"], scores, verified=row["verified_at"] is not None):
            gains[row["id"]] = found
        if row["raised_best"] is None or bool(row["raised_best"]) != bool(found):
            wrong.append(row["id"])
    return gains, wrong


async def apply(decision: Decision, rules: RewardRules) -> dict[str, Decimal]:
    """Store the bests, and pay for new ones to locked accounts; returns the credits paid by submission."""
    place = {"challenge": decision.challenge, "truth_version": decision.truth_version}
    await Best.filter(**place).delete()
    await Best.bulk_create(
        [
            Best(**place, metric=metric, value=value, submission_id=submission_id)
            for metric, (value, submission_id) in decision.held.items()
        ]
    )
    for raised in (False, True):
        for ids in in_chunks(id_ for id_ in decision.wrong if (id_ in decision.gains) == raised):
            await Submission.filter(id__in=ids).update(raised_best=raised)
    if not rules.per_day:
        return {}
    banned = await accounts.banned_among(decision.account_ids)
    paid = await Paid.of(decision.challenge, decision.account_ids)
    earned = {}
    for row in decision.raisers:
        allowed = replace(rules, per_day=0) if row.account_id in banned else rules
        if reward := await pay(row, decision.gains[row.id], allowed, paid):
            earned[row.id] = reward
            row.credits_earned += reward
            await row.save(update_fields=["credits_earned"])
    return earned
