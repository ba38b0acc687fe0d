"""Withdrawals, disqualifications and bans: what follows for ranks, bests and credits, and what it costs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
from hypothesis import given, settings
from tests.core.submissions.boards import BY, TRUTH, Game, evaluation, fill, keep, platform, prepare, sign_up
from tests.counts import LONG
from tortoise.timezone import now

from collidium import accounts, database
from collidium.challenges.models import Challenge
from collidium.errors import CollidiumError
from collidium.organising import closing
from collidium.scoring.truth.parts import ScoredTruth
from collidium.settings import Settings
from collidium.submissions import bests, reading, rescoring, rulings
from collidium.submissions.models import Best, Submission
from collidium.submissions.representatives import represent
from collidium.submissions.rewards import RewardRules

if TYPE_CHECKING:
    from collidium.platform import Platform

_games = iter(range(10**9))
#: Rows of a large leaderboard.
ROWS = 40_000 if LONG else 1_001
#: Far fewer than PostgreSQL accepts, and fewer than rows.
MOST_ARGUMENTS = 1_000

Act = tuple[str, int, tuple[float | None, float]]
value = st.integers(0, 6).map(float)
act: st.SearchStrategy[Act] = st.tuples(
    st.sampled_from(
        [*["submit"] * 6, "withdraw", "disqualify", "take_back", "reinstate", "ban", "unban", "verify"]
    ),
    st.integers(0, 20),
    st.tuples(st.none() | value, value),
)


class Caught(logging.Handler):
    """The statements of a block, with the number of their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.statements: list[tuple[str, int]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, tuple) and len(record.args) == 2:
            query, values = record.args
            rows = values if isinstance(values, list) else []
            many = bool(rows) and isinstance(rows[0], list)
            self.statements.append((str(query), max(map(len, rows)) if many else len(rows)))


@contextmanager
def caught() -> Iterator[Caught]:
    logger, handler = logging.getLogger("tortoise.db_client"), Caught()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False  # pytest would keep the text of every statement
    try:
        yield handler
    finally:
        logger.propagate = True
        logger.removeHandler(handler)
        logger.setLevel(level)


# -- the shortcut and the replay ---------------------------------------------------------------------------


@settings(max_examples=150 if LONG else 6)
@given(st.lists(act, max_size=12), st.integers(1, 3), st.sampled_from([0.0, 2.0]))
def test_a_replay_after_any_act_changes_nothing(
    migrated_database_url: str, acts: list[Act], per_day: int, significance: float
) -> None:
    """Whether an act took the shortcut or decided bests again: all is as if the replay had been made."""
    chosen = Settings(rewards_per_day=per_day, reward_significance=significance, submissions_per_day=100)
    asyncio.run(_play(migrated_database_url, platform(chosen), acts))


async def _play(url: str, server: Platform, acts: list[Act]) -> None:
    async with database.connected(url):
        game = f"toy-{next(_games)}"
        await prepare(game)
        people = [await sign_up(f"{name}-{game}") for name in ("ann", "bob", "cleo")]
        sent: list[str] = []
        pays = True
        for kind, number, scores in acts:
            with suppress(CollidiumError):
                await _act(server, game, people, sent, kind, number, scores)
                # Bests that follow from a withdrawal are paid by the next decision that pays; those of
                # self-reported scores are decided in the order of their verification.
                pays = pays and kind not in ("withdraw", "verify")
            await _assert_replayed(server, game, pays=pays, ordered="verify" not in [one[0] for one in acts])


async def _act(
    server: Platform,
    game: str,
    people: list[accounts.AccountView],
    sent: list[str],
    kind: str,
    number: int,
    scores: tuple[float | None, float],
) -> None:
    account = people[number % len(people)]
    if kind == "submit":
        sent.append(await keep(server, account, game, evaluation(*scores)))
    elif kind in ("ban", "unban"):
        await rulings.ban(server, account.hub_username, kind == "ban", **BY)
    elif sent:
        chosen = sent[number % len(sent)]
        owner = (await reading.row_of(chosen)).account_id
        if kind == "withdraw":
            await rulings.withdraw(server, next(one for one in people if one.id == owner), chosen)
        elif kind == "verify":
            await rulings.verify(server, chosen, **BY)
        elif kind == "reinstate":
            await rulings.reinstate(server, game, chosen, pays=True, **BY)
        else:
            options: Any = {"take_back": kind == "take_back", "pays": True, **BY}
            seen = await rulings.preview(server, game, chosen, pays=True)
            made = await rulings.disqualify(server, game, chosen, "why", **options)
            if kind == "disqualify":
                assert made.changes == seen.changes


class _RolledBack(Exception):
    pass


async def _assert_replayed(server: Platform, game: str, *, pays: bool, ordered: bool) -> None:
    """Deciding everything again, in a transaction that is rolled back, changes nothing."""
    assert await accounts.audit() == []
    stored = {row.metric: (row.value, row.submission_id) for row in await Best.filter(challenge=game)}

    @database.transactional
    async def replay() -> None:
        challenge = await Challenge.select_for_update().get(name=game)
        assert await represent(game, TRUTH) == {}
        decision = await bests.decide(game, Game.card, TRUTH)
        if ordered:
            assert dict(decision.held) == stored
            assert list(decision.wrong) == []
        else:
            assert {name: best for name, (best, _) in decision.held.items()} == {
                name: best for name, (best, _) in stored.items()
            }
        if pays:
            await accounts.lock(decision.account_ids)
            rules = RewardRules.of(server.settings, TRUTH, rewarded=challenge.rewarded)
            assert await bests.apply(decision, rules) == {}
        raise _RolledBack

    with suppress(_RolledBack):
        await replay()


# -- large leaderboards ------------------------------------------------------------------------------------


async def test_a_withdrawal_reads_its_own_row(connected: str) -> None:
    """What raised no best and earned nothing leaves at the same cost whatever else there is."""
    server = platform(Settings(submissions_per_day=100))
    await prepare("toy")
    people = [await sign_up(name) for name in ("ann", "bob")]
    counts = []
    for number in range(2):
        await keep(server, people[0], "toy", evaluation(6.0 + number))
        next_best = await keep(server, people[1], "toy", evaluation(2.0))
        best = await keep(server, people[1], "toy", evaluation(3.0))
        with caught() as seen:
            await rulings.withdraw(server, people[1], best)
        assert (await Submission.get(id=next_best)).represents
        counts.append(len(seen.statements))
        assert not [query for query, _ in seen.statements if "replicates" in query]
        await rulings.withdraw(server, people[1], next_best)
        for _ in range(20):
            await keep(server, people[0], "toy", evaluation(2.0))
    assert counts[0] == counts[1]


async def test_statements_of_large_leaderboards_are_short(connected: str) -> None:
    """A challenge whose events are split ends; then participants withdraw, are banned, and are rescored."""
    server = platform()
    part = ScoredTruth(TRUTH).part("public", 50)
    await prepare("toy-2", truth_version=part)
    ids = await fill("toy-2", ROWS, also=part.final)
    await Challenge.filter(name="toy-2").update(closes_at=now() - timedelta(days=1))
    with caught() as seen:
        assert await closing.end(server, "toy-2")
        assert await Submission.filter(represents=True).count() == ROWS
        row = (await Submission.all().order_by("-rank_score").limit(1))[0]
        ranks = await rulings.preview(server, "toy-2", row.id, pays=True)
        assert len(ranks.changes) == ROWS
        options: Any = {"take_back": True, "pays": True, **BY}
        await rulings.disqualify(server, "toy-2", row.id, "why", **options)
        await rulings.ban(server, "user-00003", True, **BY)
        await rulings.ban(server, "user-00003", False, **BY)
        await rulings.reinstate(server, "toy-2", row.id, pays=True, **BY)
        await Challenge.filter(name="toy-2").update(closes_at=None, ended_at=None)
        owner = await accounts.find("user-00500")
        await rulings.withdraw(server, owner, ids[500])
        await rescoring.rescore(server, "toy-2", apply=True, actor="test")
        await rulings.forget(owner.id, owner.hub_username, "erased-0")
    assert max(count for _, count in seen.statements) <= MOST_ARGUMENTS
