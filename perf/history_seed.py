"""A challenge as use makes it, for perf/history.py and perf/standing.py, written into a database in bulk.

Submissions by a tenth as many accounts: better ones later, with ties, with replicates, draws and curves; one
in twenty is withdrawn, and some are disqualified.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import msgspec
import numpy as np
from api import publish_truth
from measuring import Target, hello
from tortoise.expressions import Q
from tortoise.models import Model

from collidium import database
from collidium.accounts.models import Account
from collidium.challenges.models import Challenge
from collidium.database import execute_many, in_chunks
from collidium.database.statements import insertion
from collidium.submissions.models import Best, Scoring, Submission
from collidium.testing.server import ServerProcess
from collidium_tasks.tracking import TrackingTask

SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (100,)
TURNS, QUICK_TURNS = 5, 1
SETTINGS = {"PLATFORM_LOG_LEVEL": "warning", "PLATFORM_FOLLOW_REQUESTS": "false"}
CARD = TrackingTask.card
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DISQUALIFIED = 20
#: The account that acts, and one that is banned.
OWN, OTHER = "alice", "bob"
#: Submissions of the acting account that raised no best, and those that hold bests.
OWN_MANY, OWN_BESTS = 30, 8
CURVES = [
    {"name": "eff", "title": "", "quantity": "pt", "edges": [1, 2], "values": [0.5], "errors": [0.1]}
] * 5


@dataclass(frozen=True)
class Seeded:
    """A server with a challenge, and the plain one."""

    server: ServerProcess
    plain: Target
    database_url: str
    token: str
    #: Ids of the acting account's submissions.
    many: Sequence[str]
    bests: Sequence[str]


@contextmanager
def seeded(directory: Path, url: str | None, size: int) -> Iterator[Seeded]:
    with ServerProcess(directory / "server", url, SETTINGS) as server, hello() as plain:
        tokens = {name: server.add_user(name) for name in (OWN, OTHER)}
        publish_truth(server, directory, hits=2000, events=2)
        for token in tokens.values():
            headers = {"Authorization": f"Bearer {token}"}
            me = httpx.get(f"{server.base_url}/v1/me", headers=headers, trust_env=False, timeout=60)
            assert me.status_code == 200
        database_url = url or f"sqlite:///{server.data_dir / 'collidium.sqlite3'}"
        made = asyncio.run(fill(database_url, size))
        own = [row for row in made if row.hub_username == OWN and row.standing == "ranked"]
        bests = [row.id for row in own if (row.rank_score or 0) > 1][::-1]
        many = [row.id for row in own if row.id not in bests]
        yield Seeded(server, plain, database_url, tokens[OWN], many, bests)


def rows(size: int, ids: Mapping[str, int], truth: str) -> Iterator[Submission]:
    """The acting account's are in the middle, and the last ones, each of which holds the bests then.

    The other account's raised them once.
    """
    random = np.random.default_rng(size)
    names = list(ids)
    for number in range(size):
        name, skill = names[number % len(names)], round(random.random() * number / size, 3)
        standing = "disqualified" if number < DISQUALIFIED else "withdrawn" if number % 20 == 3 else "ranked"
        if number >= size - OWN_BESTS:
            name, skill, standing = OWN, 1 + number / size, "ranked"
        elif number == size // 3:
            name, skill, standing = OTHER, 0.99, "ranked"
        elif 0 <= number - size // 2 < OWN_MANY:
            name, skill, standing = OWN, skill / 2, "ranked"
        yield submission(number, skill, standing, (name, ids[name]), truth)


def submission(number: int, skill: float, standing: str, account: tuple[str, int], truth: str) -> Submission:
    name, account_id = account
    return Submission(
        id=uuid.uuid4().hex,
        challenge=CARD.name,
        task=CARD.name,
        account_id=account_id,
        hub_username=name,
        participant=f"account:{account_id}",
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


def scoring(row: Submission, random: np.random.Generator) -> Scoring:
    draws = random.normal(row.rank_score or 0, 0.004, 200).round(5)
    return Scoring(
        submission_id=row.id,
        scorer_version=row.scorer_version,
        truth_version=row.truth_version,
        scores=row.scores,
        # Encoded here, as the database's own encoder takes longer than all the rest.
        replicates=msgspec.json.encode(dict.fromkeys(row.scores, draws.tolist())).decode(),
        primary_draws=draws.astype(np.float32).tobytes(),
        curves=CURVES,
        scored_at=row.submitted_at,
        applied_at=row.submitted_at,
    )


async def write(made: Sequence[Model]) -> None:
    """Insert rows of one table."""
    statements = [insertion(row) for row in made]
    await execute_many(statements[0].sql, [statement.values for statement in statements])


async def fill(url: str, size: int) -> list[Submission]:
    random = np.random.default_rng(1)
    async with database.connected(url):
        listed = await Challenge.get(name=CARD.name)
        people = [
            Account(
                hub_username=f"user-{number}",
                signed_up_at=BEGIN,
                credits=number % 100,
                banned=number % 500 == 1,
            )
            for number in range(size // 10)
        ]
        await Account.bulk_create(people, batch_size=500)
        accounts = Account.filter(Q(hub_username__in=[OWN, OTHER]) | Q(signed_up_at=BEGIN))
        ids = dict(await accounts.values_list("hub_username", "id"))
        made = list(rows(size, ids, str(listed.truth_version)))
        ranked = [row for row in reversed(made) if row.rank_score is not None]
        best = {row.participant: row for row in sorted(ranked, key=lambda row: row.rank_score or 0)}
        for row in best.values():
            row.represents = True
        for some in in_chunks(made, 2000):
            await write(some)
            await write([scoring(row, random) for row in some])
        bests = [
            Best(
                challenge=listed.name,
                truth_version=listed.truth_version,
                metric=metric.name,
                value=made[-1].scores[metric.name],
                submission_id=made[-1].id,
            )
            for metric in CARD.metrics
            if metric.higher_is_better
        ]
        await Best.bulk_create(bests)
        listed.revision += 1
        await listed.save(update_fields=["revision"])
    return made
