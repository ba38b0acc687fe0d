"""The error for a task without truth names challenges that accept submissions."""

from __future__ import annotations

from datetime import timedelta

from tortoise.timezone import now

from collidium.challenges.models import Challenge
from collidium.submissions import admissions


async def test_open_challenges_of_a_task_without_truth_are_named(connected: str) -> None:
    own = await Challenge.create(name="jets", task="jets")
    await Challenge.create(name="jets-mini", task="jets", truth_version="1")
    await Challenge.create(name="jets-draft", task="jets", truth_version="1", listed=False)
    await Challenge.create(name="jets-old", task="jets", truth_version="1", closes_at=now() - timedelta(1))
    await Challenge.create(name="tracks-mini", task="tracking", truth_version="1")
    reason = await admissions._without_truth(own)
    assert reason == "it has no truth yet to score them against; open challenges of its task: jets-mini"
