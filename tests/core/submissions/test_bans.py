"""Bans and disqualifications concurrent with other transactions."""

from __future__ import annotations

import asyncio
import uuid
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.waiting import eventually_async
from toy_task import Toy

from collidium import accounts, database
from collidium.challenges.models import Challenge
from collidium.database import transactional
from collidium.plugins import Provided
from collidium.scoring.engine import ScoringResult
from collidium.scoring.uncertainty import Replicates
from collidium.settings import Settings
from collidium.submissions import rulings, submit
from collidium.submissions.admissions import Admission
from collidium.submissions.models import Submission
from collidium.truth import registry
from collidium.truth.models import TruthVersion

if TYPE_CHECKING:
    from collidium.platform import Platform

BY: Any = {"actor": "test", "http_request_id": ""}
TRUTH = "0123456789ab"


#: Transactions of SQLite run one after the other.
pytestmark = pytest.mark.only_on("postgresql")


@pytest.fixture
def platform(connected: str) -> Platform:
    found = SimpleNamespace(tasks=Provided("task", things={"toy": Toy()}), settings=Settings())
    return cast("Platform", found)


async def prepare(*challenges: str) -> None:
    manifest = {
        "dataset": "toy",
        "revision": "1",
        "events": {"start": 0, "stop": 7},
        "floors": {},
        "tables": {},
    }
    await TruthVersion.create(task="toy", version=TRUTH, manifest=manifest)
    for name in challenges:
        await Challenge.create(name=name, task="toy", truth_version=TRUTH)


async def sign_up(name: str) -> accounts.AccountView:
    return await accounts.recognise(name, signup_grant=Decimal(0))


async def keep(platform: Platform, account: accounts.AccountView, challenge: str, accuracy: float) -> str:
    """Keep a submission, as after scoring."""
    row = await Challenge.get(name=challenge)
    truth = await registry.find("toy", TRUTH)
    admission = Admission(account, row, Toy(), truth, 1, practice=False, arrival="", early=False, team=None)
    submission = Submission(
        id=uuid.uuid4().hex,
        challenge=challenge,
        task="toy",
        account_id=account.id,
        hub_username=account.hub_username,
        participant=admission.participant,
        sha256=uuid.uuid4().hex,
        size_bytes=1,
        scorer_version="1",
        truth_version=TRUTH,
    )
    metrics = {"accuracy": accuracy, "missing": 0.0}
    replicates = Replicates({name: [value] * 200 for name, value in metrics.items()})
    evaluation = ScoringResult(metrics, [], 1, replicates, {})
    outcome = await submit._keep_once(platform.settings, admission, submission, evaluation)
    return outcome.submission.submission_id


async def waits_for_a_lock() -> bool:
    return bool(await database.rows_of("SELECT 1 FROM pg_locks WHERE NOT granted"))


async def test_a_ban_reaches_a_submission_kept_meanwhile(platform: Platform) -> None:
    await prepare("toy", "toy-2")
    mallory = await sign_up("mallory")
    await keep(platform, mallory, "toy", 0.5)
    kept, go_on = asyncio.Event(), asyncio.Event()

    @transactional
    async def keep_slowly() -> None:
        await keep(platform, mallory, "toy-2", 0.7)
        kept.set()
        await go_on.wait()

    keeping = asyncio.ensure_future(keep_slowly())
    await kept.wait()
    banning = asyncio.ensure_future(rulings.ban(platform, "mallory", True, **BY))
    try:
        await eventually_async(waits_for_a_lock, 20)
    finally:
        go_on.set()
    await asyncio.gather(keeping, banning)
    assert await Submission.filter(standing="ranked") == []


@pytest.mark.parametrize("action", ["ban", "take_back"])
async def test_accounts_are_locked_in_one_order(platform: Platform, action: str) -> None:
    """Another challenge's replay locks ann, then zoe; both are also rivals of mallory."""
    await prepare("toy", "toy-2")
    ann, zoe, mallory = [await sign_up(name) for name in ("ann", "zoe", "mallory")]
    await keep(platform, zoe, "toy", 0.2)
    await keep(platform, ann, "toy-2", 0.2)
    first = [await keep(platform, mallory, challenge, 0.5) for challenge in ("toy", "toy-2")][-1]
    asked, go_on = asyncio.Event(), asyncio.Event()

    @transactional
    async def replay_elsewhere() -> None:
        await accounts.lock({ann.id})
        asked.set()
        await go_on.wait()
        await accounts.lock({zoe.id, mallory.id})

    replaying = asyncio.ensure_future(replay_elsewhere())
    await asked.wait()
    acting: asyncio.Future[Any]
    if action == "ban":
        acting = asyncio.ensure_future(rulings.ban(platform, "mallory", True, **BY))
    else:
        acting = asyncio.ensure_future(
            rulings.disqualify(platform, "toy-2", first, "x", take_back=True, pays=True, **BY)
        )
    try:
        await eventually_async(waits_for_a_lock, 20)
    finally:
        go_on.set()
    await asyncio.gather(replaying, acting)
