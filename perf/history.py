"""CPU of what must not grow with the history: lists, histories, results, pages, and the choice of deliveries.

    python -m perf history

A challenge has 1,000, 10,000 and 100,000 submissions by a tenth as many accounts (perf/history_seed.py). The
history and the front are read after a new submission. The outbox has as many deliveries of e-mail that are
due, each of another account; a take chooses eight. Results as CSV are those of all submissions; the figure is
that of a thousand of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
from history_seed import BEGIN, CARD, OWN, QUICK_SIZES, QUICK_TURNS, SIZES, TURNS, seeded, submission, write
from measuring import Figure, call, cpu_seconds, milliseconds, on_both_databases
from tortoise.expressions import F

from collidium import database
from collidium.accounts.models import Account
from collidium.challenges.models import Challenge
from collidium.outbox import deliveries
from collidium.outbox.models import Delivery, OutboxEvent
from collidium.outbox.turns import Memory, in_turn
from collidium.submissions import leaderboard
from collidium.submissions.fronts import Fronts
from collidium.submissions.models import Submission
from collidium.testing.server import ServerProcess

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
    "page of a leaderboard after a change": (f"/leaderboard/{CARD.name}", 1, True),
    "page of a leaderboard": (f"/leaderboard/{CARD.name}", 50, False),
}
RESULTS = f"/v1/challenges/{CARD.name}/results?all=true&format=csv"


async def change(url: str) -> None:
    """Add a submission, which is not the best."""
    async with database.connected(url):
        listed = await Challenge.get(name=CARD.name)
        account = await Account.get(hub_username=OWN)
        number = await Submission.all().count()
        owner = account.hub_username, account.id
        await write([submission(number, 0.3, "ranked", owner, str(listed.truth_version))])
        await Challenge.filter(name=CARD.name).update(revision=F("revision") + 1)


def measure(
    kind: str, directory: Path, url: str | None, quick: bool, *, size: int, turns: int
) -> Iterator[Figure]:
    taken: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in CALLS}
    csv: list[float] = []
    with seeded(directory, url, size) as made:
        for turn in range(turns + 1):
            control = milliseconds(made.plain, call("/"), range(100))
            for name, (path, count, changed) in CALLS.items():
                if changed:
                    asyncio.run(change(made.database_url))
                value = taken_by(made.server, path, count)
                if turn:
                    taken[name][0].append(value)
                    taken[name][1].append(control)
        for _ in range(min(turns, 2)):
            asyncio.run(change(made.database_url))
            csv.append(taken_by(made.server, RESULTS, 1) / size * 1000)
        front = asyncio.run(fronts(made.database_url, turns))
        takes = asyncio.run(outbox(made.database_url, size, turns))
    for name, (values, controls) in taken.items():
        yield Figure(f"{name}, {size:,} submissions, {kind}", values, controls)
    yield Figure(f"1,000 of all results as CSV, {size:,} submissions, {kind}", csv, [control] * len(csv))
    yield Figure(f"front after a change, {size:,} submissions, {kind}", front, [control] * turns)
    yield Figure(f"a take of the outbox, {size:,} deliveries, {kind}", takes, [control] * turns)


async def fronts(url: str, turns: int) -> list[float]:
    """Milliseconds of CPU of this process, without PostgreSQL's."""
    card, values, found = replace(CARD, pareto=(CARD.metrics[0].name, CARD.metrics[1].name)), [], Fronts()
    for _ in range(turns + 1):
        await change(url)
        async with database.connected(url):
            version = await leaderboard.current_version(CARD.name)
            before = time.process_time()
            assert await found.of(version, card)
            values.append((time.process_time() - before) * 1000)
    return values[1:]


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
