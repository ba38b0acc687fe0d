"""Changes whether submissions have a rank, with the ranks, bests and rewards that follow.

What raised no best and earned nothing leaves a leaderboard at the cost of its own row and of the submission
that represents its participant next: all others have what they would have in a leaderboard without it. In any
other case bests are decided again (:mod:`~collidium.submissions.bests`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from collidium import accounts, challenges, operations
from collidium.challenges import Challenge, Participant
from collidium.database import execute_many, rows_of, transactional
from collidium.errors import Conflict
from collidium.records import RankChange
from collidium.submissions import bests, notices, rewards, scores, waiting
from collidium.submissions.bests import Decision
from collidium.submissions.leaderboard import RankCounter
from collidium.submissions.models import Best, Submission
from collidium.submissions.representatives import represent
from collidium.submissions.rewards import RewardRules, is_paid
from collidium.truth import registry

if TYPE_CHECKING:
    from tortoise.queryset import QuerySet

    from collidium.settings import Settings
    from collidium.submissions.replay import ReplayTarget

#: The columns that decide what a change does.
_COLUMNS: Final = (
    *("id", "account_id", "hub_username", "participant", "standing", "credits_earned", "raised_best"),
    *("scores", "evaluation_id", "baseline", "submitted_at"),
)
_PLACES: Final = """
SELECT id, hub_username, rank_score, baseline FROM submissions
WHERE challenge = ? AND truth_version = ? AND represents ORDER BY rank_score DESC, submitted_at, id
"""
_RETURN: Final = "UPDATE submissions SET standing = ?, standing_reason = ?, rank_score = ? WHERE id = ?"

#: Places of a leaderboard, best first.
Places = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class RankStanding:
    """Whether a submission has a rank (``ranked``) or why not, with a reason for users."""

    standing: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StandingChange:
    """A new standing of submissions to a challenge, and who gives it to them."""

    settings: Settings
    target: ReplayTarget
    new: RankStanding
    actor: str
    #: The action in the audit log.
    action: str
    http_request_id: str
    #: The subject in the audit log; empty: the challenge.
    about: str = ""
    #: Whether to take back what these submissions earned, down to a balance of zero.
    take_back: bool = False
    #: Whether new bests are paid.
    pays: bool = True


@dataclass(frozen=True, slots=True)
class Begun:
    """A change whose accounts are not locked yet."""

    change: StandingChange
    challenge: Challenge
    rows: Sequence[Submission]
    #: None: bests stay.
    decision: Decision | None

    @property
    def account_ids(self) -> set[int]:
        """The accounts to lock, together with those of other changes of the transaction."""
        paid = self.decision.account_ids if self.decision and self.change.pays else set[int]()
        return paid | ({row.account_id for row in self.rows} if self.change.take_back else set())


async def run(change: StandingChange, submission_id: str) -> None:
    """Change the standing of a submission; raises Conflict if it has changed meanwhile."""
    await _run_once(change, submission_id, shows=False, applies=True)


async def reviewed(change: StandingChange, submission_id: str, *, applies: bool) -> tuple[RankChange, ...]:
    """As :func:`run`, and return the changes of ranks; without ``applies`` it is rolled back."""
    try:
        return await _run_once(change, submission_id, shows=True, applies=applies)
    except _Preview as preview:
        return preview.changes


class _Preview(Exception):
    """Rolls the transaction back, and carries the changes."""

    def __init__(self, changes: tuple[RankChange, ...]) -> None:
        super().__init__()
        self.changes = changes


@transactional
async def _run_once(
    change: StandingChange, submission_id: str, *, shows: bool, applies: bool
) -> tuple[RankChange, ...]:
    target = change.target
    # Bests are decided under the challenge's lock.
    challenge = await challenges.locked(target.challenge)
    if challenge.truth_version != target.truth_version:
        raise Conflict("the task's truth has changed since; score again against the new one")
    before = await _places(target) if shows else ()
    begun = await begin(change, challenge, Submission.filter(id=submission_id))
    await accounts.lock(begun.account_ids)
    earned = await finish(begun)
    changes: tuple[RankChange, ...] = ()
    if shows:
        after = await _places(target)
        names = {row.id: row.hub_username for row in (begun.decision.raisers if begun.decision else ())}
        changes = await asyncio.to_thread(_changes, before, after, earned, names)
    if not applies:
        raise _Preview(changes)
    return changes


async def begin(change: StandingChange, challenge: Challenge, selected: QuerySet[Submission]) -> Begun:
    """Change the rows of the selected submissions of a locked challenge, and decide what follows."""
    new, target = change.new, change.target
    rows = await selected.order_by("submitted_at", "id").only(*_COLUMNS)
    for row in rows:
        if (row.standing == "ranked") == (new.standing == "ranked"):
            raise Conflict(f"submission {row.id} is now {row.standing}")
        if new.standing == "withdrawn" and row.credits_earned:
            # The same gain could be paid again, to another account.
            raise Conflict("the submission earned credits: it cannot be withdrawn")
    decides = new.standing == "ranked" or await _changes_bests(challenge, rows)
    if new.standing == "ranked":
        await _return(change, challenge, rows)
    else:
        gone = {"rank_score": None, "represents": False, "raised_best": False}
        # With the revision that ends the change (finish).
        left = {"left_revision": challenge.revision + 1}
        await selected.update(standing=new.standing, standing_reason=new.reason, **gone, **left)
        await waiting.retry_unranked({row.id for row in rows})
    await represent(challenge.name, target.truth_version, {row.participant for row in rows})
    decision = None
    if decides:
        decision = await bests.decide(challenge.name, target.task.card, target.truth_version)
    return Begun(change, challenge, rows, decision)


async def _changes_bests(challenge: Challenge, rows: Sequence[Submission]) -> bool:
    """Whether bests or rewards may be others without these submissions."""
    if any(row.credits_earned or row.raised_best is not False for row in rows):
        return True
    held = await Best.filter(challenge=challenge.name).values_list("submission_id", flat=True)
    return not {row.id for row in rows}.isdisjoint(map(str, held))


async def _return(change: StandingChange, challenge: Challenge, rows: Sequence[Submission]) -> None:
    """Give ranks to submissions, as far as their participants' final ones are not complete."""
    ranked = dict[Participant, int]()
    if challenge.truth_version is not None and challenge.truth_version.kind == "final":
        for participant in {row.participant for row in rows}:
            own = Submission.filter(challenge=challenge.name, participant=participant, standing="ranked")
            ranked[participant] = await own.count()
    values = []
    for row in rows:
        standing, score = change.new.standing, scores.rank_score(change.target.task.card, row)
        if row.participant in ranked:
            if ranked[row.participant] >= challenge.final_submissions:
                standing, score = "not_final", None
            ranked[row.participant] += standing == "ranked"
        values.append((standing, change.new.reason, score, row.id))
    await execute_many(_RETURN, values)


async def finish(begun: Begun) -> dict[str, Decimal]:
    """Take back and pay credits of locked accounts, and record the change; returns the credits paid."""
    change, challenge = begun.change, begun.challenge
    if change.take_back:
        for row in begun.rows:
            await rewards.take_back(row)
    earned: dict[str, Decimal] = {}
    if begun.decision is not None:
        target = change.target
        truth = await registry.find(target.task.card.name, target.truth_version)
        rewarded = is_paid(change.settings, challenge, truth) and change.pays
        rules = RewardRules.of(change.settings, change.target.truth_version, rewarded=rewarded)
        earned = await bests.apply(begun.decision, rules)
    await challenges.bump_revision(challenge)
    await _audit(change, sum(earned.values(), Decimal(0)))
    if change.new.standing == "disqualified":
        for row in begun.rows:
            await notices.disqualified(await Submission.get(id=row.id), challenge)
    return earned


async def _audit(change: StandingChange, paid: Decimal) -> None:
    scorer_version, truth_version = change.target.versions
    details = {
        "scorer_version": scorer_version,
        "truth_version": truth_version,
        "credits_paid": str(paid),
        "challenge": change.target.challenge,
        "reason": change.new.reason,
    }
    about = change.about or change.target.challenge
    await operations.record(change.actor, change.action, about, details, change.http_request_id)


async def _places(target: ReplayTarget) -> Places:
    return await rows_of(_PLACES, target.challenge, target.truth_version)


def _changes(
    before: Places, after: Places, earned: Mapping[str, Decimal], names: Mapping[str, str]
) -> tuple[RankChange, ...]:
    """The submissions whose rank changes or that earn credits, in the order of the new leaderboard."""
    ranks = _ranks(before), _ranks(after)
    names = {**names, **{row["id"]: row["hub_username"] for row in (*before, *after)}}
    return tuple(
        RankChange(id_, names[id_], ranks[0].get(id_), ranks[1].get(id_), earned.get(id_, Decimal(0)))
        for id_ in dict.fromkeys((*ranks[1], *ranks[0], *earned))
        if ranks[0].get(id_) != ranks[1].get(id_) or id_ in earned
    )


def _ranks(places: Places) -> dict[str, int]:
    counter = RankCounter()
    return {row["id"]: counter.next(row["rank_score"], bool(row["baseline"])) for row in places}
