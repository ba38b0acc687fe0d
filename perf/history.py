"""CPU of what must not grow with the history: lists, histories, results, pages, and the choice of deliveries.

    python -m perf history

A challenge has 1,000, 10,000 and 100,000 submissions by a tenth as many accounts, as use makes them: with
ties, better ones later, withdrawn and disqualified ones, and draws. The history is read after a change of
the leaderboard. The outbox has as many deliveries of e-mail that are due, each of another account; a take
chooses eight.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import numpy as np
from api import publish_truth
from leaderboard_seed import scoring
from measuring import Figure, Target, call, cpu_seconds, hello, milliseconds, on_both_databases

from collidium import database
from collidium.accounts.models import Account
from collidium.benchmarks.models import Challenge, Submission
from collidium.outbox import deliveries
from collidium.outbox.models import Delivery, OutboxEvent
from collidium.outbox.turns import Memory, in_turn
from collidium.testing.server import ServerProcess
from collidium_tasks.tracking import TrackingTask

SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (100,)
TURNS, QUICK_TURNS = 5, 1
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CARD = TrackingTask.card
#: By name: the path, how often it is called in a turn, and whether after a new submission each time.
CALLS = {
    "GET /admin/submissions?task=": (f"/admin/submissions?limit=50&task={CARD.name}", 10, False),
    "GET /admin/challenges/{name}/submissions": (
        f"/admin/challenges/{CARD.name}/submissions?limit=50",
        10,
        False,
    ),
    "GET /admin/challenges/{name}/roster": (f"/admin/challenges/{CARD.name}/roster?limit=50", 5, False),
    "GET /admin/accounts?sort=credits": ("/admin/accounts?limit=50&sort=credits", 10, False),
    "GET /admin/accounts?banned=true": ("/admin/accounts?limit=50&banned=true", 10, False),
    "GET /admin/accounts?search=": ("/admin/accounts?limit=50&search=unknown", 10, False),
    "results by status": (f"/v1/challenges/{CARD.name}/results?status=disqualified&format=csv", 1, True),
    "history after a change": (f"/v1/leaderboard/{CARD.name}/history?limit=50", 1, True),
    "page of a leaderboard": (f"/leaderboard/{CARD.name}", 10, False),
}


def rows(size: int, ids: dict[str, int], truth: str) -> Iterator[Submission]:
    """Submissions that get better with time; one in twenty is withdrawn, and twenty are disqualified."""
    random, names = np.random.default_rng(size), list(ids)
    for number in range(size):
        name, skill = names[number % len(names)], round(random.random() * number / size, 4)
        standing = "disqualified" if number < 20 else "withdrawn" if number % 20 == 3 else "ranked"
        yield Submission(
            id=uuid.uuid4().hex,
            challenge=CARD.name,
            task=CARD.name,
            account_id=ids[name],
            hub_username=name,
            participant=f"account:{ids[name]}",
            represents=number >= size - len(names) and standing == "ranked",
            standing=standing,
            sha256=uuid.uuid4().hex * 2,
            size_bytes=1,
            rows=1,
            scores={one.name: skill if one.higher_is_better else 1 - skill for one in CARD.metrics},
            uncertainties={one.name: 0.001 for one in CARD.metrics},
            rank_score=skill if standing == "ranked" else None,
            scorer_version=TrackingTask.version,
            truth_version=truth,
            submitted_at=BEGIN + timedelta(minutes=number),
        )


async def fill(url: str, size: int) -> None:
    random = np.random.default_rng(1)
    async with database.connected(url):
        listed = await Challenge.get(name=CARD.name)
        people = [
            Account(hub_username=f"user-{number}", credits=number % 100, banned=number % 500 == 1)
            for number in range(size // 10)
        ]
        await Account.bulk_create(people, batch_size=500)
        ids = dict(await Account.all().values_list("hub_username", "id"))
        made = list(rows(size, ids, str(listed.truth_version)))
        for begin in range(0, size, 2000):
            some = made[begin : begin + 2000]
            await Submission.bulk_create(some, batch_size=500)
            await type(scoring(some[0], random)).bulk_create(
                [scoring(row, random) for row in some], batch_size=500
            )


async def change(url: str) -> None:
    """What a submission changes of the leaderboard's version."""
    async with database.connected(url):
        await Challenge.filter(name=CARD.name).update(revision=int(time.time() * 1000))


def measure(
    kind: str, directory: Path, url: str | None, quick: bool, *, size: int, turns: int
) -> Iterator[Figure]:
    settings = {"PLATFORM_LOG_LEVEL": "warning", "PLATFORM_FOLLOW_REQUESTS": "false"}
    taken: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in CALLS}
    with ServerProcess(directory / "server", url, settings) as server, hello() as plain:
        database_url = url or f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"
        publish_truth(server, directory, hits=2000, events=2)
        asyncio.run(fill(database_url, size))
        for turn in range(turns + 1):
            control = milliseconds(Target(plain.base_url, plain.pid), call("/"), range(100))
            for name, (path, count, changed) in CALLS.items():
                if changed:
                    asyncio.run(change(database_url))
                value = taken_by(server, path, count)
                if turn:
                    taken[name][0].append(value)
                    taken[name][1].append(control)
        takes = asyncio.run(outbox(database_url, size, turns))
    for name, (values, controls) in taken.items():
        yield Figure(f"{name}, {size:,} submissions, {kind}", values, controls)
    yield Figure(f"a take of the outbox, {size:,} deliveries, {kind}", takes, [control] * turns)


def taken_by(server: ServerProcess, path: str, count: int) -> float:
    """Milliseconds of the server's CPU for each of so many calls, one after another."""
    headers = {"X-Admin-Token": server.admin_token}
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=600, trust_env=False) as client:
        before = cpu_seconds(server.pid)
        for _ in range(count):
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
    return (cpu_seconds(server.pid) - before) / count * 1000


async def outbox(url: str, size: int, turns: int) -> list[float]:
    """Milliseconds of CPU of this process, without PostgreSQL's."""
    async with database.connected(url):
        moment = datetime.now(UTC)
        await OutboxEvent.create(id="e", type="x", reference="r", body="{}", created_at=BEGIN)
        for begin in range(0, size, 1000):
            waiting = [
                Delivery(
                    event_id="e",
                    account_id=begin + number + 1,
                    url="mailto:",
                    created_at=BEGIN,
                    next_attempt_at=BEGIN + timedelta(milliseconds=begin + number),
                )
                for number in range(1000)
            ]
            await Delivery.bulk_create(waiting[: size - begin], batch_size=500)
        memory = Memory()
        values = []
        for _ in range(turns + 1):
            before = time.process_time()
            choose = partial(in_turn, under_way=[], standing=memory.standing, last_turns=memory.last_turns)
            assert len(await deliveries.take(moment, timedelta(hours=1), choose)) == 8
            values.append((time.process_time() - before) * 1000)
    return values[1:]


def figures(quick: bool) -> Iterator[Figure]:
    turns = QUICK_TURNS if quick else TURNS
    for size in QUICK_SIZES if quick else SIZES:
        yield from on_both_databases(partial(measure, size=size, turns=turns), quick)
