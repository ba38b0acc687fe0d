"""Browser sessions, sign-ins under way, and limits of attempts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.clock import Clock

from collidium import sessions, settings
from collidium.errors import TooManyRequests
from collidium.secrets import Secrets
from collidium.sessions import Sessions
from collidium.sessions.models import PendingSignIn, SignInAttempts, WebSession
from collidium.sessions.sessions import MAX_PER_ACCOUNT, OVERALL

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

pytestmark = pytest.mark.usefixtures("connected")


@pytest.fixture
def clock() -> Clock[datetime]:
    return Clock(datetime(2026, 1, 1, 12, tzinfo=UTC))


def with_key(clock: Clock[datetime], key: str = "pass phrase") -> Sessions:
    limits = settings.load(session_idle_hours=24, session_hours=7 * 24)
    return Sessions(limits, Secrets([key]), clock)


# -- sessions -----------------------------------------------------------------------------------------


async def test_session_lasts_while_it_is_used(clock: Clock[datetime]) -> None:
    kept = with_key(clock)
    key = (await kept.begin("ann", "hub_token")).key
    for _ in range(3):
        found = await kept.find(key)
        assert found is not None
        assert (found.hub_username, found.token) == ("ann", "hub_token")
        clock.now += DAY - timedelta(seconds=1)
    assert await kept.find(key) is not None
    clock.now += DAY
    assert await kept.find(key) is None


async def test_session_ends_with_its_token_or_its_time(clock: Clock[datetime]) -> None:
    kept = with_key(clock)
    long, short = await kept.begin("ann", "one"), await kept.begin("ann", "two", HOUR.total_seconds())
    never = await kept.begin("ann", "three", -1e300)
    clock.now += HOUR
    assert await kept.find(short.key) is None
    assert await kept.find(never.key) is None
    for _ in range(167):
        assert await kept.find(long.key) is not None
        clock.now += HOUR
    assert await kept.find(long.key) is None


async def test_ended_sessions_are_deleted(clock: Clock[datetime]) -> None:
    kept = with_key(clock)
    await kept.begin("ann", "one", HOUR.total_seconds())
    await kept.begin("ann", "two")
    clock.now += DAY + HOUR
    await kept.begin("bob", "three")
    assert await WebSession.all().count() == 1


async def test_an_ended_session_is_deleted_when_it_is_used(clock: Clock[datetime]) -> None:
    kept = with_key(clock)
    key = (await kept.begin("ann", "hub_token")).key
    clock.now += DAY + HOUR
    assert await kept.find(key) is None
    assert not await WebSession.exists()


async def test_oldest_sessions_of_an_account_end(clock: Clock[datetime]) -> None:
    kept = with_key(clock)
    other = await kept.begin("bob", "token")
    keys = []
    for _ in range(MAX_PER_ACCOUNT + 2):
        keys.append((await kept.begin("ann", "token")).key)
        clock.now += timedelta(seconds=1)
    assert [await kept.find(key) is not None for key in keys] == [False] * 2 + [True] * MAX_PER_ACCOUNT
    assert await kept.find(other.key) is not None


async def test_concurrent_sign_ins_all_begin(clock: Clock[datetime]) -> None:
    kept = with_key(clock)
    await asyncio.gather(*(kept.begin("ann", "old", 0.0) for _ in range(10)))
    begun = await asyncio.gather(*(kept.begin("ann", "token") for _ in range(10)))
    assert all([await kept.find(session.key) for session in begun])


async def test_lost_encryption_key_signs_out(clock: Clock[datetime]) -> None:
    key = (await with_key(clock).begin("ann", "hub_token")).key
    assert await with_key(clock, "another pass phrase").find(key) is None
    assert await with_key(clock).find(key) is not None


async def test_ended_session_is_not_found(clock: Clock[datetime]) -> None:
    kept = with_key(clock)
    session = await kept.begin("ann", "hub_token")
    for _ in range(2):
        await kept.end(session.key)
        assert await kept.find(session.key) is None


async def test_database_reveals_neither_key_nor_token(clock: Clock[datetime]) -> None:
    session = await with_key(clock).begin("ann", "hub_token")
    row = await WebSession.get()
    kept = " ".join(str(value) for value in dict(row).values())
    assert not any(secret in kept for secret in (session.key, session.csrf, "hub_token"))


# -- sign-ins under way -------------------------------------------------------------------------------


async def test_pending_sign_in_is_finished_once() -> None:
    begun = await sessions.begin("https://here/web/callback", "/events")
    assert await sessions.finish([begun.key], "another") is None
    back = await asyncio.gather(*(sessions.finish([begun.key], begun.state) for _ in range(8)))
    assert [found for found in back if found is not None] == [begun]


async def test_late_sign_in_is_not_finished() -> None:
    late = await sessions.begin("https://here", "/")
    await PendingSignIn.all().update(ends_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert await sessions.finish([late.key], late.state) is None
    await sessions.begin("https://here", "/")
    assert await PendingSignIn.all().count() == 1


# -- attempts -----------------------------------------------------------------------------------------


@pytest.fixture
def minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands in the middle of a minute."""
    monkeypatch.setattr("collidium.sessions.sessions.time.time", lambda: 1_000_000_020.0)


@pytest.mark.usefixtures("minute")
async def test_attempts_of_an_address_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        await sessions.count_attempt("sign-in", "192.0.2.1", 3)
    with pytest.raises(TooManyRequests) as refused:
        await sessions.count_attempt("sign-in", "192.0.2.1", 3)
    seconds = int(refused.value.headers["Retry-After"])
    assert 1 <= seconds <= 61
    await sessions.count_attempt("sign-in", "192.0.2.2", 3)
    await sessions.count_attempt("callback", "192.0.2.1", 3)
    monkeypatch.setattr("collidium.sessions.sessions.time.time", lambda: 1_000_000_020.0 + seconds)
    await sessions.count_attempt("sign-in", "192.0.2.1", 3)
    assert await SignInAttempts.all().count() == 2


@pytest.mark.usefixtures("minute")
async def test_concurrent_attempts_are_all_counted() -> None:
    attempts = [sessions.count_attempt("sign-in", "192.0.2.1", 3) for _ in range(8)]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert outcomes.count(None) == 3
    assert sum(isinstance(outcome, TooManyRequests) for outcome in outcomes) == 5


@pytest.mark.usefixtures("minute")
async def test_attempts_of_all_addresses_are_limited() -> None:
    for number in range(OVERALL):
        await sessions.count_attempt("sign-in", f"192.0.2.{number}", 1)
    with pytest.raises(TooManyRequests):
        await sessions.count_attempt("sign-in", "198.51.100.1", 1)


@pytest.mark.usefixtures("minute")
async def test_one_address_leaves_attempts_to_others() -> None:
    for _ in range(OVERALL * 2):
        try:
            await sessions.count_attempt("sign-in", "192.0.2.1", 1)
        except TooManyRequests:
            continue
    await sessions.count_attempt("sign-in", "192.0.2.2", 1)
