"""A leaderboard with many places, written into a server's database as if they had been scored."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import numpy as np

from collidium import database
from collidium.challenges.models import Challenge
from collidium.submissions.models import Scoring, Submission
from collidium_tasks.tracking import TrackingTask

#: Accounts that share the places.
ACCOUNTS = 500
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def scoring(row: Submission, random: np.random.Generator) -> Scoring:
    """What ranks are compared by: the primary metric of 200 draws."""
    draws = random.normal(row.rank_score or 0, 0.004, 200).astype(np.float32)
    return Scoring(
        submission_id=row.id,
        scorer_version=row.scorer_version,
        truth_version=row.truth_version,
        scores=row.scores,
        primary_draws=draws.tobytes(),
        scored_at=row.submitted_at,
    )


async def fill(url: str, places: int) -> None:
    """Add so many places to the tracking task's leaderboard; they get better with time, with much scatter."""
    random = np.random.default_rng(places)
    card = TrackingTask.card
    async with database.connected(url):
        listed = await Challenge.get(name=card.name)
        for begin in range(0, places, 5000):
            numbers = range(begin, min(begin + 5000, places))
            rows = [
                Submission(
                    id=uuid.uuid4().hex,
                    challenge=card.name,
                    task=card.name,
                    account_id=1_000_000 + number % ACCOUNTS,
                    hub_username=f"user-{number % ACCOUNTS}",
                    participant=f"account:{uuid.uuid4().int}",
                    represents=True,
                    sha256=uuid.uuid4().hex * 2,
                    size_bytes=1,
                    rows=1,
                    scores={
                        metric.name: skill if metric.higher_is_better else 1 - skill
                        for metric in card.metrics
                    },
                    uncertainties={metric.name: 0.001 for metric in card.metrics},
                    rank_score=skill,
                    model_repo=f"user-{number % ACCOUNTS}/model",
                    scorer_version=TrackingTask.version,
                    truth_version=listed.truth_version,
                    submitted_at=BEGIN + timedelta(minutes=number),
                )
                for number, skill in zip(
                    numbers, random.random(len(numbers)) * (0.5 + np.array(numbers) / places / 2), strict=True
                )
            ]
            await Submission.bulk_create(rows, batch_size=1000)
            await Scoring.bulk_create([scoring(row, random) for row in rows], batch_size=1000)
        listed.revision += 1
        await listed.save()
