"""Leaderboards with many places, written into a server's database as if they had been scored."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import numpy as np

from collidium import database
from collidium.challenges.models import Challenge
from collidium.contracts.task import Task
from collidium.submissions.models import Scoring, Submission
from collidium.testing.server import ServerProcess

EVENTS = Path(str(files("collidium") / "demo" / "data" / "odd-ttbar-pu0"))
BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)


def give_truth(server: ServerProcess, task: str) -> None:
    """Events 3 and 4 of the demo as the task's truth."""
    dataset = ("--from", str(EVENTS), "--config", "ttbar_pu0", "--events", "3:5")
    done = server.run("truth", "import", task, *dataset)
    assert done.returncode == 0, done.stderr


def fill(server: ServerProcess, task: Task, places: int, *, users: int = 40) -> None:
    """Give the task so many places; they get better with time. Of what is traded, more costs more."""
    with ThreadPoolExecutor(1) as thread:  # in this one a browser's loop may run
        thread.submit(asyncio.run, _fill(server, task, places, users)).result()


async def _fill(server: ServerProcess, task: Task, places: int, users: int) -> None:
    async with database.connected(f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"):
        listed = await Challenge.get(name=task.card.name)
        assert listed.truth_version is not None
        rows = [_row(task, listed.truth_version, number, places, users) for number in range(places)]
        await Submission.bulk_create(rows, batch_size=500)
        await Scoring.bulk_create([_scoring(row) for row in rows], batch_size=500)
        listed.revision += 1
        await listed.save()


def _scoring(row: Submission) -> Scoring:
    """Each scatters by itself, as if the events of each were others."""
    assert row.rank_score is not None
    draws = np.random.default_rng(row.submitted_at.toordinal()).normal(row.rank_score, 0.004, 50)
    return Scoring(
        submission_id=row.id,
        scorer_version=row.scorer_version,
        truth_version=row.truth_version,
        scores=row.scores,
        primary_draws=draws.astype(np.float32).tobytes(),
        scored_at=row.submitted_at,
    )


def _row(task: Task, truth_version: str, number: int, places: int, users: int) -> Submission:
    random = np.random.default_rng(number)
    skill = 0.3 + 0.65 * number / places * random.random() + 0.02 * random.random()
    primary = task.card.primary_metric
    scores = {m.name: skill if m.higher_is_better else (1 - skill) / 3 for m in task.card.metrics}
    if "n_params" in scores:
        scores["n_params"] = float(int(10 ** (2 + 3 * skill * random.random())))
    value = scores[primary.name]
    return Submission(
        id=uuid.uuid5(uuid.NAMESPACE_URL, f"{task.card.name}/{number}").hex,
        challenge=task.card.name,
        task=task.card.name,
        account_id=1_000_000 + number % users,
        hub_username=f"user-{number % users}",
        # Each its own, so that the board is as long as it has submissions.
        participant=f"account:{number}",
        represents=True,
        sha256=f"{number:064x}",
        size_bytes=123_456,
        rows=7_890,
        scores=scores,
        uncertainties={name: 0.004 for name in scores if name != "n_params"},
        rank_score=value if primary.higher_is_better else -value,
        model_repo=f"user-{number % users}/model-{number % 3}" if number % 4 else None,
        scorer_version=task.version,
        truth_version=truth_version,
        submitted_at=BEGIN + timedelta(hours=300 * 24 * number / places),
    )
