"""Replays a challenge: applies new scores as if they had held from the first submission on.

Bests are decided again in the order of submission. Paid rewards stay paid, and each is paid once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium import accounts, challenges, operations
from collidium.challenges import Challenge
from collidium.database import execute_many, in_chunks, stored, transactional
from collidium.errors import Conflict
from collidium.runtime import failpoints
from collidium.submissions import bests, scores
from collidium.submissions.leaderboard import RankCounter
from collidium.submissions.models import Best, Scoring, Submission
from collidium.submissions.representatives import represent
from collidium.submissions.rewards import RewardRules, is_paid
from collidium.truth import registry

if TYPE_CHECKING:
    from collidium.contracts.task import Task
    from collidium.scoring.truth.parts import ScoredTruth
    from collidium.settings import Settings


class Incomplete(Exception):
    """A submission has no new scores yet."""


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """The scorer and the truth whose scores will count."""

    challenge: str
    task: Task
    truth_version: ScoredTruth

    @classmethod
    def current(cls, challenge: Challenge, task: Task) -> ReplayTarget:
        """Return that whose scores count; raises Conflict for a challenge without truth."""
        if challenge.truth_version is None:
            raise Conflict(f"{challenge.name!r} has no truth: there is nothing to score against")
        return cls(challenge.name, task, challenge.truth_version)

    @property
    def versions(self) -> tuple[str, ScoredTruth]:
        """The versions of scorer and truth."""
        return self.task.version, self.truth_version

    def needs_scores(self, row: Submission) -> bool:
        """Whether a submission competes and its current scores are of other versions."""
        return row.standing != "practice" and (row.scorer_version, row.truth_version) != self.versions


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay and its operator; ``problems``: why submissions cannot be scored, by id."""

    settings: Settings
    target: ReplayTarget
    problems: Mapping[str, str]
    actor: str
    #: The action in the audit log.
    action: str = "rescore"
    http_request_id: str = ""
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
    truth_version: ScoredTruth
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
    challenge = await challenges.locked(target.challenge)
    if challenge.truth_version != target.truth_version:
        raise Conflict("the task's truth has changed since; score again against the new one")
    rows = await submissions_to(challenge.name)
    scored = await scores.scored(challenge.name, target.versions)
    if any(target.needs_scores(row) and row.id not in scored | plan.problems.keys() for row in rows):
        raise Incomplete
    problems = {**plan.problems, **_duplicates(rows, target)}
    before = await _State.of(rows, target)
    for some in in_chunks(row for row in rows if target.needs_scores(row)):
        made = await scores.without_replicates([row.id for row in some], target.versions)
        found = {id_: scoring for id_, scoring in made.items() if id_ not in problems}
        await apply_scores(some, found, target)
    return await _finish(plan, challenge, rows, before, problems, apply=apply)


async def submissions_to(challenge: str) -> list[Submission]:
    """All submissions to a challenge in their order; other requests run between the chunks that are read."""
    ordered = Submission.filter(challenge=challenge).order_by("submitted_at", "id")
    ids = [str(id_) for id_ in await ordered.values_list("id", flat=True)]
    found: dict[str, Submission] = {}
    for some in in_chunks(ids):
        found |= {row.id: row for row in await Submission.filter(id__in=some)}
    return [found[id_] for id_ in ids if id_ in found]


async def _finish(
    plan: Replay,
    challenge: Challenge,
    rows: Sequence[Submission],
    before: _State,
    problems: Mapping[str, str],
    *,
    apply: bool,
) -> Review:
    target = plan.target
    changed = await represent(challenge.name, target.truth_version)
    for row in rows:
        row.represents = changed.get(row.id, row.represents)
    decision = await bests.decide(challenge.name, target.task.card, target.truth_version)
    await accounts.lock(decision.account_ids)
    truth = await registry.find(target.task.card.name, target.truth_version)
    rewarded = is_paid(plan.settings, challenge, truth) and plan.pays
    rules = RewardRules.of(plan.settings, target.truth_version, rewarded=rewarded)
    earned = await bests.apply(decision, rules)
    await challenges.bump_revision(challenge)
    after = await _State.of([row for row in rows if row.truth_version == target.truth_version], target)
    review = _review(plan, rows, before, after, earned, problems)
    if not apply:
        raise Preview(review)
    await _audit(plan, earned)
    failpoints.reached("rescore.before_commit")
    return replace(review, applied=True)


@dataclass(frozen=True, slots=True)
class _State:
    """Ranks on the leaderboard of each truth, scores and bests, before or after the replay."""

    ranks: Mapping[str, int]
    scores: Mapping[str, tuple[Mapping[str, float], tuple[str, str]]]
    bests: Mapping[str, float]

    @classmethod
    async def of(cls, rows: Sequence[Submission], target: ReplayTarget) -> _State:
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
    await operations.record(plan.actor, plan.action, plan.target.challenge, details, plan.http_request_id)


def _duplicates(rows: Iterable[Submission], target: ReplayTarget) -> dict[str, str]:
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


#: The columns of a submission that its scores decide.
_SCORED: Final = ("scorer_version", "truth_version", "scores", "uncertainties", "warnings", "rank_score")
_APPLY: Final = f"UPDATE submissions SET {', '.join(f'{name} = ?' for name in _SCORED)} WHERE id = ?"  # noqa: S608 -- names alone


async def apply_scores(rows: Sequence[Submission], made: Mapping[str, Scoring], target: ReplayTarget) -> None:
    """Apply the new scores of a chunk of submissions, and keep the old ones.

    Without new scores a submission leaves the leaderboard.
    """
    card, scored = target.task.card, [row for row in rows if row.id in made]
    for row in rows:
        if row.id not in made and row.truth_version == target.truth_version:
            row.rank_score = None
            await row.save(update_fields=["rank_score"])
    await scores.keep_current(scored)
    for row in scored:
        found = made[row.id]
        row.scorer_version, row.truth_version = target.versions
        row.update_from_dict(scores.shown(card, row, found.scores, found.uncertainties, found.warnings))
        row.rank_score = scores.rank_score(card, row) if row.standing == "ranked" else None
    values = [(*(stored(Submission, name, getattr(row, name)) for name in _SCORED), row.id) for row in scored]
    await execute_many(_APPLY, values)
    previewed = [found.id for row in scored if (found := made[row.id]).applied_at is None]
    await Scoring.filter(id__in=previewed).update(applied_at=now())


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


async def _bests(target: ReplayTarget) -> dict[str, float]:
    """The bests against a truth, or the latest earlier ones if there are none yet."""
    rows = await Best.filter(challenge=target.challenge).order_by("id")
    current = {row.metric: row.value for row in rows if row.truth_version == target.truth_version}
    return current or {row.metric: row.value for row in rows}
