"""Replays a challenge: applies new scores or standings as if they had held from the first submission on.

Bests are decided again in the order of submission. Paid rewards stay paid, and each is paid once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from tortoise.timezone import now

from collidium import accounts, operations
from collidium.benchmarks import challenges, notices, rewards, truth_versions
from collidium.benchmarks.leaderboard import RankCounter
from collidium.benchmarks.models import Best, Challenge, Scoring, Submission
from collidium.benchmarks.rewards import RewardRules, reward_bests
from collidium.benchmarks.submissions import scorings
from collidium.database import transactional
from collidium.errors import Conflict
from collidium.runtime import failpoints
from collidium.scoring.truth.versions import Part

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.settings import Settings


class Incomplete(Exception):
    """A submission has no new scores yet."""


@dataclass(frozen=True, slots=True)
class Target:
    """The scorer and the truth whose scores will count."""

    challenge: str
    task: Task
    truth_version: str

    @property
    def versions(self) -> tuple[str, str]:
        """The versions of scorer and truth."""
        return self.task.version, self.truth_version

    def needs_scores(self, row: Submission) -> bool:
        """Whether a submission competes and its current scores are of other versions."""
        return row.standing != "practice" and (row.scorer_version, row.truth_version) != self.versions


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a submission has a rank (``ranked``) or why not, with a reason for users."""

    standing: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay and its operator; ``problems``: why submissions cannot be scored, by id."""

    settings: Settings
    target: Target
    problems: Mapping[str, str]
    actor: str
    #: The action in the audit log.
    action: str = "rescore"
    http_request_id: str = ""
    #: The subject in the audit log; empty: the challenge.
    about: str = ""
    #: New standings by submission; with any, all scores stay.
    standings: Mapping[str, Standing] = field(default_factory=dict)
    #: Whether to take back what these submissions earned, down to a balance of zero.
    take_back: bool = False
    #: Whether new bests are paid.
    pays: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a submission; a rank is None if it is not on the leaderboard."""

    submission_id: str
    hub_username: str
    submitted_at: datetime
    versions_before: tuple[str, str]
    rank_before: int | None
    rank: int | None
    scores_before: Mapping[str, float]
    scores: Mapping[str, float]
    #: Credits that are paid now.
    earns: Decimal
    #: Why it has no new scores: it keeps the old ones and leaves the leaderboard.
    problem: str | None


@dataclass(frozen=True, slots=True)
class BestChange:
    """A best before and after; None where there is none."""

    metric: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Review:
    """All changes; submissions in the order of the new leaderboard."""

    task: str
    scorer_version: str
    truth_version: str
    primary_metric: str
    applied: bool
    submissions: Sequence[Change]
    bests: Sequence[BestChange]


async def run(plan: Replay, *, apply: bool) -> Review:
    """Replay in one transaction; without ``apply`` it is rolled back, and the result is a preview.

    Raises Incomplete, and Conflict if the challenge's truth has changed meanwhile.
    """
    try:
        return await _run_once(plan, apply=apply)
    except Preview as preview:
        return preview.review


class Preview(Exception):
    """Rolls the transaction back, and carries the review."""

    def __init__(self, review: Review) -> None:
        super().__init__()
        self.review = review


@transactional
async def _run_once(plan: Replay, *, apply: bool) -> Review:
    target = plan.target
    # Bests are decided under the challenge's lock.
    challenge = await Challenge.select_for_update().get(name=target.challenge)
    if challenge.truth_version != target.truth_version:
        raise Conflict("the task's truth has changed since; score again against the new one")
    rows = await Submission.filter(challenge=challenge.name).order_by("submitted_at", "id")
    made = {scoring.submission_id: scoring for scoring in await scorings.of_versions(*target.versions)}
    if plan.standings:
        return await _change_standings(plan, challenge, rows, made, apply=apply)
    if any(target.needs_scores(row) and row.id not in made and row.id not in plan.problems for row in rows):
        raise Incomplete
    problems = {**plan.problems, **_duplicates(rows, target)}
    before = await _State.of(rows, target)
    for row in rows:
        if target.needs_scores(row):
            await apply_scores(row, None if row.id in problems else made[row.id], target)
    return await _finish(plan, challenge, rows, made, before, problems, apply=apply)


async def _change_standings(
    plan: Replay,
    challenge: Challenge,
    rows: Sequence[Submission],
    made: Mapping[str, Scoring],
    *,
    apply: bool,
) -> Review:
    """Change the standings of submissions."""
    before = await _State.of(rows, plan.target)
    loses = all(new.standing != "ranked" for new in plan.standings.values())
    is_best = await Best.exists(challenge=challenge.name, submission_id__in=list(plan.standings))
    bests_stay = loses and not is_best
    # Lock all accounts at once and in order, before credits are taken back.
    await accounts.lock({row.account_id for row in rows if not bests_stay or row.id in plan.standings})
    for row in rows:
        if (new := plan.standings.get(row.id)) is not None:
            if (row.standing == "ranked") == (new.standing == "ranked"):
                raise Conflict(f"submission {row.id} is now {row.standing}")
            if new.standing == "withdrawn" and row.credits_earned:
                # The same gain could be paid again, to another account.
                raise Conflict("the submission earned credits: it cannot be withdrawn")
            row.standing, row.standing_reason = new.standing, new.reason
            if new.standing == "ranked" and _are_complete(row, rows, challenge):
                row.standing = "not_final"
            row.rank_score = scorings.rank_score(plan.target.task.card, row)
            if row.standing != "ranked":
                row.rank_score, row.represents = None, False
            if plan.take_back:
                await rewards.take_back(row)
            await row.save(update_fields=["standing", "standing_reason", "rank_score", "represents"])
    return await _finish(plan, challenge, rows, made, before, {}, apply=apply, bests_stay=bests_stay)


def _are_complete(row: Submission, rows: Iterable[Submission], challenge: Challenge) -> bool:
    """Whether a participant has the maximum number of final submissions without this one."""
    part = Part.of(challenge.truth_version)
    own = [
        one for one in rows if one.participant == row.participant and one.standing == "ranked" and one != row
    ]
    return part is not None and part.kind == "final" and len(own) >= challenge.final_submissions


async def _finish(
    plan: Replay,
    challenge: Challenge,
    rows: Sequence[Submission],
    made: Mapping[str, Scoring],
    before: _State,
    problems: Mapping[str, str],
    *,
    apply: bool,
    bests_stay: bool = False,
) -> Review:
    target = plan.target
    await represent(rows, target.truth_version)
    earned: dict[str, Decimal] = {}
    if not bests_stay:
        earned = await _decide_bests(rows, made, plan, rewarded=challenge.rewarded and plan.pays)
    await challenges.bump_revision(challenge)
    after = await _State.of([row for row in rows if row.truth_version == target.truth_version], target)
    review = _review(plan, rows, before, after, earned, problems)
    if not apply:
        raise Preview(review)
    await _audit(plan, earned)
    for row in rows:
        if (new := plan.standings.get(row.id)) is not None and new.standing == "disqualified":
            await notices.disqualified(row, challenge)
    failpoints.reached("rescore.before_commit")
    return replace(review, applied=True)


@dataclass(frozen=True, slots=True)
class _State:
    """Ranks on the leaderboard of each truth, scores and bests, before or after the replay."""

    ranks: Mapping[str, int]
    scores: Mapping[str, tuple[Mapping[str, float], tuple[str, str]]]
    bests: Mapping[str, float]

    @classmethod
    async def of(cls, rows: Sequence[Submission], target: Target) -> _State:
        scores = {row.id: (row.scores, (row.scorer_version, row.truth_version)) for row in rows}
        return cls(_ranks(rows), scores, await _bests(target))


def _review(
    plan: Replay,
    rows: Sequence[Submission],
    before: _State,
    after: _State,
    earned: Mapping[str, Decimal],
    problems: Mapping[str, str],
) -> Review:
    target = plan.target
    changes = [
        Change(
            submission_id=row.id,
            hub_username=row.hub_username,
            submitted_at=row.submitted_at,
            versions_before=before.scores[row.id][1],
            rank_before=before.ranks.get(row.id),
            rank=after.ranks.get(row.id),
            scores_before=before.scores[row.id][0],
            scores=row.scores,
            earns=earned.get(row.id, Decimal(0)),
            problem=problems.get(row.id),
        )
        for row in sorted(rows, key=lambda row: after.ranks.get(row.id, len(rows) + 1))
    ]
    bests = [
        BestChange(metric.name, before.bests.get(metric.name), after.bests.get(metric.name))
        for metric in target.task.card.metrics
        if metric.higher_is_better
    ]
    card = target.task.card
    return Review(card.name, *target.versions, card.primary_metric.name, False, changes, bests)


async def _audit(plan: Replay, earned: Mapping[str, Decimal]) -> None:
    scorer_version, truth_version = plan.target.versions
    details = {
        "scorer_version": scorer_version,
        "truth_version": truth_version,
        "credits_paid": str(sum(earned.values(), Decimal(0))),
    }
    for standing in plan.standings.values():
        details |= {"challenge": plan.target.challenge, "reason": standing.reason or ""}
    about = plan.about or plan.target.challenge
    await operations.record(plan.actor, plan.action, about, details, plan.http_request_id)


def _duplicates(rows: Iterable[Submission], target: Target) -> dict[str, str]:
    """Problems of repeated files: of an account's equal files one counts, preferably one already scored."""
    rows = [row for row in rows if row.standing == "ranked"]
    held: dict[tuple[int, str], str] = {}
    for already in (True, False):
        for row in rows:
            if target.needs_scores(row) != already:
                held.setdefault((row.account_id, row.sha256), row.id)
    return {
        row.id: f"the same file is submission {held[row.account_id, row.sha256]}"
        for row in rows
        if held[row.account_id, row.sha256] != row.id
    }


async def apply_scores(row: Submission, scoring: Scoring | None, target: Target) -> None:
    """Apply new scores and keep the old ones; without new scores the submission leaves the leaderboard."""
    if scoring is None:
        if row.truth_version == target.truth_version:
            row.rank_score = None
            await row.save(update_fields=["rank_score"])
        return
    await scorings.keep_current(row)
    row.scorer_version, row.truth_version = target.versions
    card = target.task.card
    row.update_from_dict(scorings.shown(card, row, scoring.scores, scoring.uncertainties, scoring.warnings))
    row.rank_score = scorings.rank_score(card, row) if row.standing == "ranked" else None
    await row.save()
    if scoring.applied_at is None:
        scoring.applied_at = now()
        await scoring.save(update_fields=["applied_at"])


async def _decide_bests(
    rows: Iterable[Submission], made: Mapping[str, Scoring], plan: Replay, *, rewarded: bool
) -> dict[str, Decimal]:
    """Decide the bests in the order of submission; returns the credits paid by submission."""
    target = plan.target
    task, truth_version = target.task.card.name, target.truth_version
    rules = RewardRules.of(plan.settings, truth_version, rewarded=rewarded)
    ranked = [row for row in rows if row.truth_version == truth_version and row.rank_score is not None]
    await accounts.lock({row.account_id for row in ranked})
    banned = await accounts.banned_among({row.account_id for row in ranked})
    floors = (await truth_versions.find(task, truth_version)).floors
    await Best.filter(challenge=target.challenge, truth_version=truth_version).delete()
    earned = {}
    for row in ranked:
        allowed = replace(rules, per_day=0) if row.account_id in banned else rules
        replicates = (made[row.id].replicates if row.id in made else None) or {}
        earned[row.id] = await reward_bests(target.task.card, row, floors, replicates, allowed)
        if earned[row.id]:
            row.credits_earned += earned[row.id]
            await row.save(update_fields=["credits_earned"])
    return earned


async def represent(rows: Iterable[Submission], truth_version: str) -> None:
    """Let the best submission of each participant represent it on the leaderboard."""
    best: dict[str, str] = {}
    ranked = [row for row in rows if row.truth_version == truth_version]
    for row in sorted(ranked, key=place):
        if row.rank_score is not None:
            best.setdefault(row.participant, row.id)
    for row in ranked:
        if row.represents != (best.get(row.participant) == row.id):
            row.represents = not row.represents
            await row.save(update_fields=["represents"])


def place(row: Submission) -> tuple[float, datetime, str]:
    """The sort key of ranked submissions on a leaderboard."""
    return -(row.rank_score or 0), row.submitted_at, row.id


def _ranks(rows: Iterable[Submission]) -> dict[str, int]:
    """Ranks on the leaderboards of these submissions, one for each truth."""
    boards: dict[str, RankCounter] = {}
    return {
        row.id: boards.setdefault(row.truth_version, RankCounter()).next(row.rank_score, row.baseline)
        for row in sorted((row for row in rows if row.represents), key=place)
    }


async def _bests(target: Target) -> dict[str, float]:
    """The bests against a truth, or the latest earlier ones if there are none yet."""
    rows = await Best.filter(challenge=target.challenge).order_by("id")
    current = {row.metric: row.value for row in rows if row.truth_version == target.truth_version}
    return current or {row.metric: row.value for row in rows}
