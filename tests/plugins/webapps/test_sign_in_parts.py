"""What signing in remembers: sessions, sign-ins on their way, and how often somebody tried."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from collidium.errors import TooManyRequests, Unavailable
from collidium.secrets import Secrets
from collidium_plugins.webapps.sign_in.departures import SECONDS, Departures
from collidium_plugins.webapps.sign_in.limits import OVERALL, Limits
from collidium_plugins.webapps.sign_in.sessions import MOST_PER_ACCOUNT, Sessions
from collidium_plugins.webapps.sign_in.store import Store

HOUR, DAY = 3600.0, 24 * 3600.0


class Clock:
    """Stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1_000_000_020.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = Store(tmp_path / "web" / "sessions.sqlite3")
    yield store
    store.close()


def sessions_in(store: Store, clock: Clock, key: str = "pass phrase") -> Sessions:
    return Sessions(store, Secrets([key]), idle_seconds=DAY, longest_seconds=7 * DAY, clock=clock)


async def rows(store: Store, table: str) -> int:
    return await store.read(lambda db: int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]))  # noqa: S608 -- a name from below


# -- sessions ----------------------------------------------------------------------------------------------


async def test_a_session_ends_when_nobody_comes_and_lasts_while_somebody_does(
    store: Store, clock: Clock
) -> None:
    sessions = sessions_in(store, clock)
    key = (await sessions.begin("ann", "hub_token")).key
    for _ in range(3):
        found = await sessions.find(key)
        assert found is not None
        assert (found.hub_username, found.token) == ("ann", "hub_token")
        clock.now += DAY - 1
    assert await sessions.find(key) is not None
    clock.now += DAY
    assert await sessions.find(key) is None


async def test_a_session_ends_in_the_end(store: Store, clock: Clock) -> None:
    sessions = sessions_in(store, clock)
    long, short = await sessions.begin("ann", "one"), await sessions.begin("ann", "two", HOUR)
    clock.now += HOUR
    assert await sessions.find(short.key) is None
    for _ in range(167):
        assert await sessions.find(long.key) is not None
        clock.now += HOUR
    assert await sessions.find(long.key) is None


async def test_ended_sessions_are_swept(store: Store, clock: Clock) -> None:
    sessions = sessions_in(store, clock)
    await sessions.begin("ann", "one", HOUR)
    await sessions.begin("ann", "two")
    clock.now += DAY + 1
    await sessions.begin("bob", "three")
    assert await rows(store, "sessions") == 1


async def test_an_account_has_so_many_sessions_and_the_oldest_end(store: Store, clock: Clock) -> None:
    sessions = sessions_in(store, clock)
    other = await sessions.begin("bob", "token")
    keys = []
    for _ in range(MOST_PER_ACCOUNT + 2):
        keys.append((await sessions.begin("ann", "token")).key)
        clock.now += 1
    assert [await sessions.find(key) is not None for key in keys] == [False] * 2 + [True] * MOST_PER_ACCOUNT
    assert await sessions.find(other.key) is not None


async def test_a_token_whose_key_is_lost_signs_nobody_in(store: Store, clock: Clock) -> None:
    key = (await sessions_in(store, clock).begin("ann", "hub_token")).key
    assert await sessions_in(store, clock, "another pass phrase").find(key) is None
    assert await sessions_in(store, clock).find(key) is not None


async def test_another_process_knows_the_session(store: Store, clock: Clock, tmp_path: Path) -> None:
    session = await sessions_in(store, clock).begin("ann", "hub_token")
    with closing(Store(tmp_path / "web" / "sessions.sqlite3")) as other:
        sessions = sessions_in(other, clock)
        assert await sessions.find(session.key) == session
        await sessions.end(session.key)
    assert await sessions_in(store, clock).find(session.key) is None


# -- sign-ins on their way ---------------------------------------------------------------------------------


async def test_only_one_of_many_comes_back(store: Store, clock: Clock) -> None:
    departures = Departures(store, clock)
    left = await departures.begin("https://here/web/callback", "/events")
    assert await departures.end(left.key, "another") is None
    back = await asyncio.gather(*(departures.end(left.key, left.state) for _ in range(8)))
    assert [found for found in back if found is not None] == [left]


async def test_a_sign_in_may_take_its_time_and_no_longer(store: Store, clock: Clock) -> None:
    departures = Departures(store, clock)
    first, second = [await departures.begin("https://here", "/") for _ in range(2)]
    clock.now += SECONDS - 1
    assert await departures.end(first.key, first.state) is not None
    clock.now += 1
    assert await departures.end(second.key, second.state) is None
    await departures.begin("https://here", "/")
    assert await rows(store, "departures") == 1


# -- how often ---------------------------------------------------------------------------------------------


async def test_an_address_may_try_so_often_in_a_minute(store: Store, clock: Clock) -> None:
    limits = Limits(store, 3, clock)
    for _ in range(3):
        await limits.count("sign-in", "192.0.2.1")
    with pytest.raises(TooManyRequests) as refused:
        await limits.count("sign-in", "192.0.2.1")
    assert 1 <= int(refused.value.headers["Retry-After"]) <= 61
    await limits.count("sign-in", "192.0.2.2")
    await limits.count("callback", "192.0.2.1")
    clock.now += int(refused.value.headers["Retry-After"])
    await limits.count("sign-in", "192.0.2.1")
    assert await rows(store, "attempts") == 2


async def test_everybody_together_may_try_so_often_in_a_minute(store: Store, clock: Clock) -> None:
    limits = Limits(store, 1, clock)
    for number in range(OVERALL):
        await limits.count("sign-in", f"192.0.2.{number}")
    with pytest.raises(TooManyRequests):
        await limits.count("sign-in", "198.51.100.1")


async def test_one_address_does_not_use_up_what_others_have(store: Store, clock: Clock) -> None:
    limits = Limits(store, 1, clock)
    for _ in range(OVERALL * 2):
        try:
            await limits.count("sign-in", "192.0.2.1")
        except TooManyRequests:
            continue
    await limits.count("sign-in", "192.0.2.2")


# -- the file ----------------------------------------------------------------------------------------------


def test_a_file_of_another_release_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "sessions.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE sessions (a)")
        db.execute("PRAGMA user_version = 99")
    for _ in range(2):
        with closing(Store(path)):
            pass
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(ends_at) FROM sessions").fetchone() == (0,)


async def test_a_file_that_is_broken_is_no_riddle(store: Store) -> None:
    with pytest.raises(Unavailable, match="nobody can be signed in"):
        await store.read(lambda db: db.execute("SELECT * FROM nothing"))
    with pytest.raises(Unavailable):
        await store.transact(lambda db: db.execute("SELECT * FROM nothing"))
    assert await rows(store, "sessions") == 0
