"""Processes killed at every step of ordering, handing over, following, publishing and refunding."""

from __future__ import annotations

import signal
from collections import Counter
from decimal import Decimal
from pathlib import Path

from tests import failpoints
from tests.core.simulations import life
from tests.core.simulations.conftest import GRANT, assert_sound, balance, ended
from tests.core.simulations.filed import ENDED, Filed
from tests.core.simulations.life import NAME, Life
from tests.counts import LONG
from tests.hub import HubServer, own_hub
from tortoise.timezone import now

from collidium import accounts, outbox, records, simulations
from collidium.outbox.models import OutboxEvent
from collidium.platform import Platform
from collidium.simulations.models import HistoryLine, SimulationRequest

__all__ = ["own_hub"]

_OTHERS = (
    *("backup.", "challenge.", "erase.", "evaluate.", "operate.", "receive."),
    *("rescore.", "restore.", "seed.", "sweep."),
)
#: Those of simulation requests.
NAMES = frozenset(name for name in failpoints.NAMES if not name.startswith(_OTHERS))


_FINISH = [
    "finish.cleared",
    "finish.before_refund",
    "finish.before_totals",
    "finish.before_outbox",
    "finish.before_commit",
    "finish.after_commit",
]
_CANCEL = ["cancel.before_commit", "cancel.found", "cancel.asked"]
#: A request that fails, is cancelled or completes is finished alike: each of these by another one.
_REFUNDS = [
    Life(name, channel=channel, cancelled=channel == "jets")
    for name, channel in zip(_FINISH, ["zee", "jets", "single_muon"] * 2, strict=True)
]
#: The job takes too long.
_IMPATIENT = {"running_deadline_seconds": "0.05"}
_HUB_AWAY = {"hub_url": "http://127.0.0.1:9/hub"}

#: Reached by jobs that are not over at once, or by what goes wrong.
_SPECIAL = {*_CANCEL, "follow.before_commit", "give_up.stopped", "postpone.before_commit"}

ALL_LIVES = [
    *(Life(name) for name in sorted(NAMES - _SPECIAL)),
    *(Life(name, channel="zee") for name in _FINISH),
    *(Life(name, channel="jets", cancelled=True) for name in [*_CANCEL, *_FINISH]),
    *(
        Life(name, channel="jets", overrides=_IMPATIENT)
        for name in ["give_up.stopped", "finish.before_commit"]
    ),
    *(Life(name, channel="jets") for name in ["submit.handed_over", "follow.before_commit"]),
    Life("postpone.before_commit", overrides=_HUB_AWAY),
]
#: Without ``COLLIDIUM_TEST_LONG`` one at each failpoint: of refunds every other one.
LIVES = ALL_LIVES if LONG else list({life.failpoint: life for life in [*ALL_LIVES, *_REFUNDS]}.values())


def test_every_failpoint_is_survived_below() -> None:
    assert {one.failpoint for one in LIVES} == NAMES
    assert len(NAMES) >= 20


async def test_a_kill_anywhere_loses_and_duplicates_nothing(
    migrated_database_url: str, own_hub: HubServer, tmp_path: Path
) -> None:
    jobs = Filed(tmp_path / "jobs")
    jobs.directory.mkdir()
    chosen = {"database_url": migrated_database_url, "data_dir": tmp_path / "data", "hub_url": own_hub.url}
    token = own_hub.token(NAME)
    async with life.opened(jobs.directory, chosen) as platform:
        account = await accounts.recognise(NAME, signup_grant=GRANT)
        await outbox.register(account.id, platform.secrets, url="https://receiver.example/")
    codes = life.kill_each(LIVES, jobs.directory, chosen, token)
    assert [(one.name, code) for one, code in zip(LIVES, codes, strict=True) if code != -signal.SIGKILL] == []

    async with life.opened(jobs.directory, chosen | {"lease_seconds": 1}) as platform:
        await expire_leases()
        requests = await recover(platform, token)
        assert await SimulationRequest.all().count() == len(LIVES) == len({r.request_id for r in requests})
        await assert_sound()
        await assert_paid_once(account.id, requests)
        await assert_nothing_left(tmp_path / "data" / "outputs", jobs)
        assert_published_once(own_hub, requests)


async def recover(platform: Platform, token: str) -> list[records.SimulationRequest]:
    """Order everything again, cancel what runs for ever, and follow until all has ended."""
    account = await accounts.find(NAME)
    ids = []
    for number, one in enumerate(LIVES):
        placed = await simulations.place(platform, account, *life.order(number, one, token))
        ids.append(placed.request_id)
        if one.channel == "jets" and placed.state in ("queued", "running"):
            await simulations.cancel(platform, placed.request_id, account)
    async with simulations.following(platform):
        return [await ended(request_id) for request_id in ids]


async def expire_leases() -> None:
    """Have the time pass in which no other process touches what the killed processes worked on."""
    await SimulationRequest.exclude(lease="").update(leased_until=now())


async def assert_paid_once(account_id: int, requests: list[records.SimulationRequest]) -> None:
    entries = await accounts.entries(account_id, limit=1000)
    moved = {(entry.reason, entry.reference): entry.delta for entry in entries}
    expected = {("signup_grant", "signup"): GRANT}
    for request in requests:
        consumed = {
            "completed": min(request.node_hours, request.credits_charged),
            "failed": Decimal(0),
            "cancelled": min(request.node_hours, request.credits_charged),
        }[request.state]
        expected["simulation_charge", request.request_id] = -request.credits_charged
        if request.credits_refunded:
            expected["simulation_refund", request.request_id] = request.credits_refunded
        assert request.credits_refunded == request.credits_charged - consumed
    assert moved == expected
    assert len(entries) == len(expected)
    assert await balance(NAME) == sum(expected.values())


async def assert_nothing_left(outputs: Path, jobs: Filed) -> None:
    rows = await SimulationRequest.all()
    assert {(row.step, row.lease, row.encrypted_token, row.due_at) for row in rows} == {("", "", None, None)}
    events = Counter(await OutboxEvent.all().values_list("reference", flat=True))
    assert events == dict.fromkeys((row.request_id for row in rows), 1)
    endings = await HistoryLine.filter(state__in=["completed", "failed", "cancelled"]).values_list(
        "request_id", flat=True
    )
    assert sorted(endings) == sorted(row.id for row in rows)
    assert set(jobs.states().values()) <= ENDED
    assert sorted(outputs.rglob("*")) == []


def assert_published_once(hub: HubServer, requests: list[records.SimulationRequest]) -> None:
    api = hub.api(NAME)
    published = {
        request.output_hub_repo: request.request_id for request in requests if request.state == "completed"
    }
    repositories = [info.id for info in api.list_datasets(author=NAME)]
    assert {f"{hub.url}/datasets/{repository}" for repository in repositories} == set(published)
    for repository in repositories:
        request_id = published[f"{hub.url}/datasets/{repository}"]
        titles = [commit.title for commit in api.list_repo_commits(repository, repo_type="dataset")]
        assert titles.count(f"Simulation {request_id}") == 1
