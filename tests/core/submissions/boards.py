"""A toy task with leaderboards in a database: submissions kept as after scoring, without files."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from toy_task import Toy

from collidium import accounts
from collidium.accounts.models import Account
from collidium.challenges.models import Challenge
from collidium.contracts.task import Metric
from collidium.plugins import Provided
from collidium.scoring.engine import ScoringResult
from collidium.scoring.truth.parts import ScoredTruth
from collidium.scoring.uncertainty import Replicates
from collidium.settings import Settings
from collidium.submissions import submit
from collidium.submissions.admissions import Admission
from collidium.submissions.models import Scoring, Submission
from collidium.truth import registry
from collidium.truth.models import TruthVersion

if TYPE_CHECKING:
    from collidium.platform import Platform

TRUTH = ScoredTruth("0123456789ab")
FLOOR = 1.0
START = datetime(2026, 1, 1, tzinfo=UTC)
BY: Any = {"actor": "test", "http_request_id": ""}


class Game(Toy):
    """Pays for two metrics, one of which is self-reported."""

    card = replace(
        Toy.card,
        metrics=(
            Metric(name="accuracy", higher_is_better=True, description="Primary.", missing_when="it is so"),
            Metric(name="speed", higher_is_better=True, description="A boast.", self_reported=True),
            Metric(name="missing", higher_is_better=False, description="Never paid."),
        ),
    )


def platform(settings: Settings | None = None) -> Platform:
    """What the benchmarks need of a platform."""
    found = SimpleNamespace(
        tasks=Provided("task", things={"toy": Game()}), settings=settings or Settings(), plugins=None
    )
    return cast("Platform", found)


async def prepare(*challenges: str, truth_version: str = TRUTH) -> None:
    """Import truth of seven events, and make challenges that are scored on it."""
    manifest = {
        "dataset": "toy",
        "revision": "1",
        "events": {"start": 0, "stop": 7},
        "floors": {"accuracy": FLOOR},
        "tables": {},
    }
    for version in {TRUTH, truth_version}:
        if not await TruthVersion.exists(task="toy", version=version):
            await TruthVersion.create(task="toy", version=version, manifest=manifest)
    for name in challenges:
        await Challenge.create(name=name, task="toy", truth_version=truth_version)


async def sign_up(name: str) -> accounts.AccountView:
    return await accounts.recognise(name, signup_grant=Decimal(0))


def evaluation(accuracy: float | None, speed: float = 0.0) -> ScoringResult:
    """Scores that scatter by one."""
    metrics = {"speed": speed, "missing": 0.5} | ({} if accuracy is None else {"accuracy": accuracy})
    replicates = {name: [score - 1, score + 1] * 100 for name, score in metrics.items()}
    return ScoringResult(metrics, [], 1, Replicates(replicates), {})


async def keep(
    platform: Platform, account: accounts.AccountView, challenge: str, scores: ScoringResult
) -> str:
    """Keep a submission, as after scoring; returns its id."""
    row = await Challenge.get(name=challenge)
    truth = await registry.find("toy", TRUTH)
    admission = Admission(account, row, Game(), truth, 1, practice=False, arrival="", early=False, team=None)
    submission = Submission(
        id=uuid.uuid4().hex,
        challenge=challenge,
        task="toy",
        account_id=account.id,
        hub_username=account.hub_username,
        sha256=uuid.uuid4().hex,
        size_bytes=1,
        scorer_version=Game.version,
        truth_version=TRUTH,
    )
    outcome = await submit._keep_once(platform.settings, admission, submission, scores)
    return outcome.submission.submission_id


async def fill(challenge: str, count: int, *, also: str | None = None) -> list[str]:
    """Write submissions of as many accounts in bulk, of which few raise the best; returns their ids.

    They have replicates against the challenge's truth, and against the truth ``also``.
    """
    row = await Challenge.get(name=challenge)
    truth = str(row.truth_version)
    names = [f"user-{number:05}" for number in range(count)]
    await Account.bulk_create([Account(hub_username=name, signed_up_at=START) for name in names])
    ids = dict(await Account.all().values_list("hub_username", "id"))
    rows = [
        Submission(
            id=f"{number:032x}",
            challenge=challenge,
            task="toy",
            account_id=ids[name],
            hub_username=name,
            participant=f"account:{ids[name]}",
            represents=True,
            sha256=f"{number:064x}",
            size_bytes=1,
            rows=1,
            scores={"accuracy": 2 + number * 7919 % count / count, "speed": 0.0, "missing": 0.5},
            rank_score=2 + number * 7919 % count / count,
            raised_best=None,
            scorer_version=Game.version,
            truth_version=truth,
            submitted_at=START + timedelta(seconds=number),
        )
        for number, name in enumerate(names)
    ]
    await Submission.bulk_create(rows, batch_size=1000)
    for version in filter(None, (truth, also)):
        scorings = [
            Scoring(
                submission_id=one.id,
                scorer_version=one.scorer_version,
                truth_version=version,
                scores=one.scores,
                replicates={"accuracy": [one.rank_score, one.rank_score]},
                scored_at=START,
            )
            for one in rows
        ]
        await Scoring.bulk_create(scorings, batch_size=1000)
    return [one.id for one in rows]
