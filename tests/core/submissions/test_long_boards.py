"""What long leaderboards cost: statements and rows, which grow no faster than what is asked for."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.database_work import analyze, work_of_database
from tortoise.expressions import F
from toy_task import Toy

from collidium.challenges.models import Challenge
from collidium.scoring.truth.parts import ScoredTruth
from collidium.settings import Settings
from collidium.submissions import leaderboard as boards
from collidium.submissions import rank_intervals, reading, results, ruling_changes
from collidium.submissions.fronts import Fronts
from collidium.submissions.histories import Histories
from collidium.submissions.leaderboard import ALL, EVERYONE, BoardVersion
from collidium.submissions.models import Scoring, Submission
from collidium.submissions.rank_intervals import RankIntervals
from collidium.submissions.replay import ReplayTarget
from collidium.submissions.ruling_changes import RankStanding, StandingChange

pytestmark = pytest.mark.usefixtures("connected")

CARD = replace(Toy.card, name="traded", pareto=("accuracy", "missing"))
VERSION = BoardVersion("traded", "traded", ScoredTruth("truth"), 1)
#: With no task installed.
PLATFORM: Any = SimpleNamespace(tasks=SimpleNamespace(things={}))
CHALLENGE = {"task": "traded", "challenge": "course"}
START = datetime(2026, 1, 1, tzinfo=UTC)


async def fill(count: int, **columns: Any) -> list[Submission]:
    """So many participants, a third of them with equal scores, each with draws."""
    rows = [_submission(number, count) for number in range(count)]
    for row in rows:
        row.update_from_dict(columns)
    await Submission.bulk_create(rows, batch_size=500)
    random = np.random.default_rng(1)
    draws = [random.normal(row.rank_score, 0.01, 200).astype(np.float32).tobytes() for row in rows]
    await Scoring.bulk_create(
        [
            Scoring(
                submission_id=row.id,
                scorer_version="1",
                truth_version=row.truth_version,
                scores=row.scores,
                primary_draws=drawn,
                scored_at=START,
            )
            for row, drawn in zip(rows, draws, strict=True)
        ],
        batch_size=500,
    )
    return rows


def _submission(number: int, count: int) -> Submission:
    skill = 0.5 if number % 3 == 0 else number / count
    scores: Mapping[str, float] = {"accuracy": skill, "missing": 1 - number / count / 2}
    return Submission(
        id=uuid.uuid4().hex,
        challenge=VERSION.challenge,
        task=VERSION.task,
        account_id=number,
        hub_username=f"user{number}",
        participant=f"account:{uuid.uuid4().int}",
        represents=True,
        sha256=f"{number:064}",
        size_bytes=1,
        rows=1,
        scores=scores,
        rank_score=skill,
        scorer_version="1",
        truth_version=VERSION.truth_version,
        submitted_at=START + timedelta(minutes=number),
    )


async def test_rank_intervals_read_capped_draws_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_intervals, "MAX_SUBMISSIONS", 20)
    rows = await fill(300)
    await analyze()
    async with work_of_database() as few:
        found = await RankIntervals().of(VERSION, patience=None)
    best = sorted(rows, key=lambda row: (-(row.rank_score or 0), row.submitted_at))[:20]
    assert found is not None
    assert list(found) == [row.id for row in best]
    await fill(1500, represents=False)  # the same truth, but nobody's best
    await analyze()
    async with work_of_database() as many:
        await RankIntervals().of(replace(VERSION, revision=2), patience=None)
    assert many.amount < 1.5 * few.amount


async def test_front_reads_each_submission_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "CHUNK", 50)
    await fill(500)
    await analyze()
    async with work_of_database() as first:
        front = await Fronts().of(VERSION, CARD)
    assert front
    await fill(1500)
    await analyze()
    async with work_of_database() as second:
        await Fronts().of(replace(VERSION, revision=2), CARD)
    assert second.amount < 5 * first.amount  # four times as many


@pytest.mark.parametrize("change", ["addition", "withdrawal"])
@pytest.mark.parametrize("kind", ["history", "front"])
async def test_a_change_is_added_to_what_is_known(kind: str, change: str) -> None:
    """The next history and front after it cost the same whatever else there is."""
    await Challenge.create(name=VERSION.challenge, task=VERSION.task, truth_version="truth")
    histories, fronts, costs = Histories(), Fronts(), []
    for revision, count in enumerate((300, 1500), 1):
        await fill(count)
        # No step of a history, and on no front.
        scores = {"accuracy": 0.0, "missing": 2.0}
        (worst,) = await fill(1, rank_score=0.0, scores=scores, submitted_at=START + timedelta(hours=1))
        await analyze()
        for changed in (False, True):
            if changed and change == "addition":
                await fill(1, submitted_at=START + timedelta(days=10 * revision))
                await Challenge.filter(name=VERSION.challenge).update(revision=F("revision") + 1)
            elif changed:
                await _withdraw(worst)
            async with work_of_database() as work:
                version = replace(VERSION, revision=2 * revision + changed)
                if kind == "history":
                    assert await histories.steps(version, CARD, None, limit=10)
                else:
                    assert await fronts.of(version, CARD)
            costs.append(work.amount)
    whole, after_one, _, after_another = costs
    assert after_another < 1.5 * after_one < whole


async def _withdraw(row: Submission) -> None:
    task = type("Task", (Toy,), {"card": CARD})()
    target = ReplayTarget(VERSION.challenge, task, VERSION.truth_version)
    change = StandingChange(Settings(), target, RankStanding("withdrawn"), "test", "withdraw", "")
    await ruling_changes.run(change, row.id)


@pytest.mark.parametrize("selection", [EVERYONE, ALL])
async def test_last_page_costs_what_the_first_does(selection: boards.BoardSelection) -> None:
    """Also among equal scores."""
    await fill(1500)
    await analyze()
    costs, cursor, ids = [], None, []
    while True:
        async with work_of_database() as work:
            found, cursor = await boards.places(VERSION, limit=100, cursor=cursor, selection=selection)
        costs.append(work.amount)
        ids += [place.submission_id for place in found]
        if cursor is None:
            break
    assert len(ids) == len(set(ids)) == 1500
    assert max(costs) < 2 * min(costs)


@pytest.mark.parametrize("which", ["task", "challenge", "withdrawn"])
async def test_lists_cost_the_same_among_many(which: str) -> None:
    """A page of few submissions, when another challenge of the task and this one have many more."""
    await Challenge.create(name="traded", task="traded", truth_version="truth")
    await Challenge.create(name="course", task="traded", truth_version="truth")
    await fill(30, challenge="course", standing="withdrawn")

    async def look(after: str | None = None) -> int:
        await analyze()
        async with work_of_database() as work:
            if which == "withdrawn":
                version = replace(VERSION, challenge="course")
                (found,) = [some async for some in results.without_rank(version, "withdrawn")]
                assert len(found) == 30
            else:
                named = {which: CHALLENGE[which]}
                listed = await reading.list_submissions(PLATFORM, limit=20, after=after, **named)
                assert len(listed) == 20
        return work.amount

    rows = await fill(300)
    few = await look()
    await fill(1500)
    await fill(1500, challenge="course")
    assert await look() < 1.5 * few
    assert await look(rows[150].id) < 1.5 * few or which == "withdrawn"
