"""Property tests of bests and credits under submission, verification and rescoring."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import hypothesis.strategies as st
from hypothesis import given, settings
from tests.counts import LONG
from toy_task import Toy

from collidium import accounts, database
from collidium.challenges.models import Challenge
from collidium.contracts.task import Metric
from collidium.scoring.engine import ScoringResult
from collidium.scoring.truth.parts import ScoredTruth
from collidium.scoring.uncertainty import Replicates
from collidium.settings import Settings
from collidium.submissions import replay, scores
from collidium.submissions.models import Best, Submission
from collidium.submissions.replay import Replay, ReplayTarget, Review
from collidium.submissions.rewards import RewardRules, reward_bests
from collidium.truth.models import TruthVersion

START = datetime(2026, 1, 1, tzinfo=UTC)
FLOOR = 1.0
METRICS = (
    Metric(name="accuracy", higher_is_better=True, description="The primary.", missing_when="it is so"),
    Metric(name="speed", higher_is_better=True, description="A boast.", self_reported=True),
    Metric(name="missing", higher_is_better=False, description="Never paid."),
)
_games = iter(range(10**9))


@dataclass(frozen=True)
class Sent:
    """A submission: accuracy, if any, and speed by the old scorer and the new, which may refuse it."""

    account: int
    old: tuple[float | None, float]
    new: tuple[float | None, float] | None
    verified: bool


value = st.integers(0, 8).map(float)
pair = st.tuples(st.none() | value, value)
sent = st.builds(Sent, st.integers(0, 2), pair, st.none() | pair, st.booleans())


@dataclass(frozen=True)
class Game:
    """A task, its truth and three accounts of their own in a database that all examples share."""

    number: int
    chosen: Settings

    @property
    def truth(self) -> ScoredTruth:
        return ScoredTruth(f"truth{self.number}")

    def task(self, version: str) -> Toy:
        card = replace(Toy.card, name=f"toy{self.number}", metrics=METRICS)
        kind: type[Toy] = type("Game", (Toy,), {"card": card, "version": version})
        return kind()

    async def begin(self) -> list[int]:
        """The accounts."""
        manifest = {
            "dataset": "toy",
            "revision": "1",
            "events": {"start": 0, "stop": 7},
            "floors": {"accuracy": FLOOR},
            "tables": {},
        }
        name = self.task("1").card.name
        await TruthVersion.create(task=name, version=self.truth, manifest=manifest)
        await Challenge.create(name=name, task=name, truth_version=self.truth)
        names = [f"{letter}{self.number}" for letter in "abc"]
        return [(await accounts.recognise(name, signup_grant=Decimal(0))).id for name in names]

    async def submit(self, number: int, account_id: int, one: Sent) -> str:
        task, made = self.task("1"), evaluation(*one.old)
        row = Submission(
            id=uuid.uuid4().hex,
            challenge=task.card.name,
            task=task.card.name,
            account_id=account_id,
            hub_username="someone",
            participant=f"account:{account_id}",
            sha256=f"{number:064}",
            size_bytes=1,
            rows=1,
            scores=made.metrics,
            scorer_version=task.version,
            truth_version=self.truth,
            submitted_at=START + timedelta(minutes=number),
            verified_at=START if one.verified else None,
        )
        row.rank_score = scores.rank_score(task.card, row)
        rules = RewardRules.of(self.chosen, self.truth)
        row.credits_earned = await reward_bests(task.card, row, {"accuracy": FLOOR}, made.replicates, rules)
        await row.save(force_create=True)
        await scores.keep(
            *(row.id, task.card, ("1", self.truth), made), scored_at=row.submitted_at, applied=True
        )
        return str(row.id)

    async def rescore(self, of: dict[str, Sent], *, apply: bool) -> Review:
        task = self.task("2")
        target = ReplayTarget(task.card.name, task, self.truth)
        problems = {id_: "refused" for id_, one in of.items() if one.new is None}
        for id_, one in of.items():
            if one.new is not None:
                await scores.keep(id_, task.card, target.versions, evaluation(*one.new), scored_at=START)
        return await replay.run(Replay(self.chosen, target, problems, "test"), apply=apply)


def evaluation(accuracy: float | None, speed: float) -> ScoringResult:
    """Scores that scatter by one."""
    metrics = {"speed": speed, "missing": 0.5} | ({} if accuracy is None else {"accuracy": accuracy})
    replicates = {name: [score - 1, score + 1] * 100 for name, score in metrics.items()}
    return ScoringResult(metrics, [], 1, Replicates(replicates), {})


@settings(max_examples=100 if LONG else 8)
@given(st.lists(sent, max_size=7), st.integers(0, 3), st.sampled_from([0.0, 2.0]))
def test_bests_and_credits_stay_true(
    migrated_database_url: str, files: list[Sent], per_day: int, significance: float
) -> None:
    chosen = Settings(rewards_per_day=per_day, reward_significance=significance)
    asyncio.run(_play(migrated_database_url, Game(next(_games), chosen), files))


async def _play(url: str, game: Game, files: list[Sent]) -> None:
    async with database.connected(url):
        people = await game.begin()
        of = {await game.submit(number, people[one.account], one): one for number, one in enumerate(files)}
        await _assert_true(game, people)
        before = await _paid(people)
        preview = await game.rescore(of, apply=False)
        assert await _paid(people) == before
        review = await game.rescore(of, apply=True)
        assert review == replace(preview, applied=True)
        await _assert_true(game, people)
        after = await _paid(people)
        earns = sum((change.earns for change in review.submissions), Decimal(0))
        assert sum(after) == sum(before) + earns
        assert all(now >= then for now, then in zip(after, before, strict=True)), "nothing is taken back"
        ranked = [change for change in review.submissions if change.rank is not None]
        best: dict[int, tuple[float, str]] = {}
        for id_, one in of.items():  # the earlier of equal ones
            score = one.new[0] if one.new else None
            if score is not None and (one.account not in best or score > best[one.account][0]):
                best[one.account] = score, id_
        assert {change.submission_id: change.rank for change in ranked} == {
            id_: 1 + sum(other > score for other, _ in best.values()) for score, id_ in best.values()
        }
        again = await game.rescore(of, apply=True)
        assert [change.earns for change in again.submissions] == [0] * len(files)
        assert await _paid(people) == after


async def _paid(people: list[int]) -> list[Decimal]:
    return [sum((e.delta for e in await accounts.entries(id_, limit=100)), Decimal(0)) for id_ in people]


async def _assert_true(game: Game, people: list[int]) -> None:
    """Invariants after every action."""
    assert await accounts.audit() == []
    name = game.task("1").card.name
    rows = await Submission.filter(challenge=name, rank_score__isnull=False)
    for metric, floor in (("accuracy", FLOOR), ("speed", 0.0)):
        believed = [row for row in rows if metric == "accuracy" or row.verified_at is not None]
        reached = [row.scores[metric] for row in believed if row.scores[metric] > floor]
        best = await Best.get_or_none(challenge=name, truth_version=game.truth, metric=metric)
        assert (best.value if best else None) == max(reached, default=None)
    assert not await Best.exists(challenge=name, metric="missing")
    for account_id, paid in zip(people, await _paid(people), strict=True):
        own = await Submission.filter(account_id=account_id)
        assert paid == sum((row.credits_earned for row in own), Decimal(0))
        for metric in ("accuracy", "speed"):
            notes = [entry.note for entry in await accounts.entries(account_id, limit=100)]
            assert notes.count(f"{name}: best {metric}") <= game.chosen.rewards_per_day
