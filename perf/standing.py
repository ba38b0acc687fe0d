"""CPU of withdrawals, bans and previews of disqualifications, and what /healthz waits meanwhile.

    python -m perf standing

A challenge has 1,000, 10,000 and 34,000 submissions by a tenth as many accounts, as use makes them: with
replicates and curves, ties, better ones later, withdrawn and disqualified ones. *One of many* is a submission
that raised no best and earned nothing, *a best* one that holds one.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import numpy as np
from api import delay_of_call, publish_truth
from measuring import Figure, Target, call, cpu_seconds, hello, milliseconds, on_both_databases
from tortoise.expressions import Q

from collidium import database
from collidium.accounts.models import Account
from collidium.benchmarks.models import Best, Challenge, Scoring, Submission
from collidium.testing.server import ServerProcess
from collidium_tasks.tracking import TrackingTask

SIZES, QUICK_SIZES = (1_000, 10_000, 34_000), (100,)
TURNS, QUICK_TURNS = 5, 1
#: Withdrawals of one of many in a turn.
WITHDRAWN = 5
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
#: The account that acts, and one that is banned.
OWN, OTHER = "alice", "bob"
CURVES = [
    {"name": "eff", "title": "", "quantity": "pt", "edges": [1, 2], "values": [0.5], "errors": [0.1]}
] * 5


def rows(size: int, ids: dict[str, int], truth: str) -> Iterator[Submission]:
    """Submissions that get better with time; one in twenty is withdrawn, one in fifty disqualified.

    The acting account's are in the middle, and the last ones, each of which holds the bests without the later
    ones; the other's raised them once.
    """
    random = np.random.default_rng(size)
    card, names = TrackingTask.card, list(ids)
    for number in range(size):
        name, skill = names[number % len(names)], round(random.random() * number / size, 3)
        standing = "disqualified" if number % 50 == 2 else "withdrawn" if number % 20 == 3 else "ranked"
        if number >= size - TURNS - 1:
            name, skill, standing = OWN, 1 + number / size, "ranked"
        elif number == size // 3:
            name, skill, standing = OTHER, 0.99, "ranked"
        elif 0 <= number - size // 2 < TURNS * WITHDRAWN:
            name, skill, standing = OWN, skill / 2, "ranked"
        yield Submission(
            id=uuid.uuid4().hex,
            challenge=card.name,
            task=card.name,
            account_id=ids[name],
            hub_username=name,
            participant=f"account:{ids[name]}",
            standing=standing,
            sha256=uuid.uuid4().hex * 2,
            size_bytes=1,
            rows=1,
            scores={one.name: skill if one.higher_is_better else 1 - skill for one in card.metrics},
            uncertainties={one.name: 0.001 for one in card.metrics},
            rank_score=skill if standing == "ranked" else None,
            scorer_version=TrackingTask.version,
            truth_version=truth,
            submitted_at=BEGIN + timedelta(minutes=number),
        )


def scoring(row: Submission, random: np.random.Generator) -> Scoring:
    draws = random.normal(row.rank_score or 0, 0.004, 200).round(5)
    return Scoring(
        submission_id=row.id,
        scorer_version=row.scorer_version,
        truth_version=row.truth_version,
        scores=row.scores,
        replicates=dict.fromkeys(row.scores, draws.tolist()),
        primary_draws=draws.astype(np.float32).tobytes(),
        curves=CURVES,
        scored_at=row.submitted_at,
        applied_at=row.submitted_at,
    )


async def fill(url: str, size: int) -> dict[str, list[str]]:
    """Write the submissions; returns the ids of the acting account's."""
    random = np.random.default_rng(1)
    async with database.connected(url):
        listed = await Challenge.get(name=TrackingTask.card.name)
        people = [f"user-{number}" for number in range(size // 10)]
        await Account.bulk_create([Account(hub_username=name, signed_up_at=BEGIN) for name in people])
        accounts = Account.filter(Q(hub_username__in=[OWN, OTHER]) | Q(signed_up_at=BEGIN))
        ids = dict(await accounts.values_list("hub_username", "id"))
        made = list(rows(size, ids, str(listed.truth_version)))
        ranked = sorted(
            ((row.rank_score, row.participant, row) for row in made if row.rank_score is not None),
            key=lambda one: one[:2],
        )
        for row in {participant: row for _, participant, row in ranked}.values():
            row.represents = True
        for begin in range(0, size, 2000):
            some = made[begin : begin + 2000]
            await Submission.bulk_create(some, batch_size=500)
            await Scoring.bulk_create([scoring(row, random) for row in some], batch_size=500)
        await Best.bulk_create(
            [
                Best(
                    challenge=listed.name,
                    truth_version=listed.truth_version,
                    metric=metric.name,
                    value=made[-1].scores[metric.name],
                    submission_id=made[-1].id,
                )
                for metric in TrackingTask.card.metrics
                if metric.higher_is_better
            ]
        )
    own = [row for row in made if row.hub_username == OWN and row.standing == "ranked"]
    bests = [row.id for row in own if (row.rank_score or 0) > 1]
    return {"many": [row.id for row in own if row.id not in bests], "bests": bests[::-1]}


# -- measuring ----------------------------------------------------------------------------------------


@contextmanager
def health(server: ServerProcess) -> Iterator[list[float]]:
    """Milliseconds of each call of /healthz within the context, but for waiting for a core."""
    delays: list[float] = []
    done = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.base_url, trust_env=False, timeout=60) as client:
            client.get("/healthz")
            while not done.is_set():
                delays.append(delay_of_call(client, server.pid).own * 1000)
                time.sleep(0.005)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.2)
    try:
        yield delays
    finally:
        done.set()
        asking.join()


def acts(
    server: ServerProcess, token: str, ids: dict[str, list[str]]
) -> dict[str, tuple[int, Callable[[int], httpx.Response]]]:
    """By name, how often in a turn it is called, and the call."""
    client = httpx.Client(base_url=server.base_url, trust_env=False, timeout=600)
    own, admin = {"Authorization": f"Bearer {token}"}, {"X-Admin-Token": server.admin_token}
    standing = f"/admin/challenges/{TrackingTask.card.name}/submissions"

    def withdraw(kind: str) -> Callable[[int], httpx.Response]:
        return lambda number: client.post(f"/v1/submissions/{ids[kind][number]}/withdraw", headers=own)

    def ban(banned: bool) -> Callable[[int], httpx.Response]:
        body = {"hub_username": OTHER, "banned": banned}
        return lambda _: client.post("/admin/ban", json=body, headers=admin)

    return {
        "withdraw one of many": (WITHDRAWN, withdraw("many")),
        "preview a disqualification": (
            1,
            lambda _: client.get(f"{standing}/{ids['bests'][0]}/standing", headers=admin),
        ),
        "withdraw a best": (1, withdraw("bests")),
        "ban": (1, ban(True)),
        "unban": (1, ban(False)),
    }


def measure(
    kind: str, directory: Path, url: str | None, quick: bool, *, size: int, turns: int
) -> Iterator[Figure]:
    settings = {"PLATFORM_LOG_LEVEL": "warning", "PLATFORM_FOLLOW_REQUESTS": "false"}
    taken: dict[str, tuple[list[float], list[float]]] = {}
    with ServerProcess(directory / "server", url, settings) as server, hello() as plain:
        tokens = {name: server.add_user(name) for name in (OWN, OTHER)}
        publish_truth(server, directory, hits=2000, events=2)
        for token in tokens.values():
            me = httpx.get(
                f"{server.base_url}/v1/me", headers={"Authorization": f"Bearer {token}"}, trust_env=False
            )
            assert me.status_code == 200
        ids = asyncio.run(fill(url or f"sqlite:///{server.data_dir / 'collidium.sqlite3'}", size))
        # Withdrawals first: a submission that a ban lets earn credits cannot be withdrawn.
        steps = list(acts(server, tokens[OWN], ids).items())
        order = [(turn, [step]) for step in steps[:3] for turn in range(turns)]
        for turn, some in [*order, *((turn, steps[3:]) for turn in range(turns))]:
            control = milliseconds(Target(plain.base_url, plain.pid), call("/"), range(100))
            for name, (count, act) in some:
                before = cpu_seconds(server.pid)
                for number in range(turn * count, (turn + 1) * count):
                    answer = act(number)
                    assert answer.status_code == 200, answer.text
                values, controls = taken.setdefault(name, ([], []))
                values.append((cpu_seconds(server.pid) - before) / count * 1000)
                controls.append(control)
        with health(server) as delays:
            for _, (_, act) in steps[3:]:
                act(0)
        taken["longest /healthz, ban and unban"] = [max(delays)], [control]
    for name, (values, controls) in taken.items():
        yield Figure(f"{name}, {size:,} submissions, {kind}", values, controls)


def figures(quick: bool) -> Iterator[Figure]:
    turns = QUICK_TURNS if quick else TURNS
    for size in QUICK_SIZES if quick else SIZES:
        sized = partial(measure, size=size, turns=turns)
        yield from on_both_databases(sized, quick)
