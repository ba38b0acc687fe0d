"""The cache of tokens, limits of unknown tokens, and outages of a provider."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from tests.clock import Clock
from tests.waiting import until

from collidium.accounts.identities import Identities
from collidium.contracts.identity import Identity, IdentityProvider, IdentityUnavailable
from collidium.errors import Forbidden, TooManyRequests
from collidium.settings import Settings


class Directory(IdentityProvider):
    """Knows every token that begins with ``good``, while it is not ``away``."""

    name = "directory"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False
        self.revoked: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    async def identify(self, token: str) -> Identity | None:
        self.asked.append(token)
        await self.gate.wait()
        if self.away:
            raise IdentityUnavailable("away")
        return Identity("ada") if token.startswith("good") and token not in self.revoked else None

    async def close(self) -> None:
        pass


@pytest.fixture
def clock() -> Clock[float]:
    return Clock(1000.0)


@pytest.fixture
def directory() -> Directory:
    return Directory()


def identities(directory: Directory, clock: Clock[float], **settings: Any) -> Identities:
    return Identities(directory, Settings(**settings), clock)


async def test_known_token_is_asked_about_once(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock)
    assert [await known.identify("good", "::1") for _ in range(3)] == [Identity("ada")] * 3
    assert directory.asked == ["good"]
    clock.now += 61
    assert await known.identify("good", "::1") == Identity("ada")
    assert directory.asked == ["good"] * 2


async def test_rejected_token_is_asked_about_again_soon(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock)
    assert [await known.identify("bad", "::1") for _ in range(3)] == [None] * 3
    assert directory.asked == ["bad"]
    clock.now += 6
    assert await known.identify("bad", "::1") is None
    assert directory.asked == ["bad"] * 2


async def test_cache_of_zero_seconds_asks_each_time(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock, identity_cache_seconds=0)
    for _ in range(3):
        await known.identify("good", "::1")
    assert directory.asked == ["good"] * 3


async def test_callers_of_one_token_share_one_call(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock)
    directory.gate.clear()
    waiting = [asyncio.create_task(known.identify("good", "::1")) for _ in range(50)]
    await until(lambda: directory.asked == ["good"])
    for caller in waiting[:2]:
        caller.cancel()
    await asyncio.wait(waiting[:2])
    directory.gate.set()
    assert await asyncio.gather(*waiting[2:]) == [Identity("ada")] * 48
    assert directory.asked == ["good"]


async def test_call_ends_when_its_last_caller_leaves(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock)
    directory.gate.clear()
    caller = asyncio.create_task(known.identify("good", "::1"))
    await until(lambda: directory.asked == ["good"])
    caller.cancel()
    await asyncio.wait([caller])
    directory.gate.set()
    assert await known.identify("good", "::1") == Identity("ada")
    assert directory.asked == ["good"] * 2


async def test_flood_of_one_address_is_limited(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock)
    await known.identify("good", "192.0.2.1")
    waits: set[str] = set()

    async def flood(count: int) -> int:
        """How many of that many new tokens are asked about."""
        before = len(directory.asked)
        for number in range(count):
            try:
                await known.identify(f"bad {before} {number}", "192.0.2.1")
            except TooManyRequests as error:
                waits.add(error.headers["Retry-After"])
        return len(directory.asked) - before

    assert await flood(500) == 99
    clock.now += 10
    assert await flood(500) == 10
    assert await known.identify("good", "192.0.2.1") == Identity("ada")
    assert waits == {"1"}
    assert await known.identify("good too", "192.0.2.2") == Identity("ada")


async def test_flood_of_many_addresses_is_limited(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock)
    refused = 0
    for number in range(2000):
        try:
            await known.identify(f"bad {number}", f"198.51.{number % 50}.1")
        except TooManyRequests:
            refused += 1
    assert len(directory.asked) == 600
    assert refused == 1400


async def test_a_known_token_is_accepted_during_a_flood(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock)
    await known.identify("good", "192.0.2.1")
    clock.now += 12 * 3600
    for number in range(1000):
        with suppress(TooManyRequests):
            await known.identify(f"bad {number}", f"198.51.{number % 50}.1")
    assert await known.identify("good", "192.0.2.1") == Identity("ada")
    directory.revoked.add("good")
    clock.now += 61
    assert await known.identify("good", "192.0.2.1") is None


async def test_unknown_tokens_leave_connections_to_known(clock: Clock[float]) -> None:
    class Slow(Directory):
        """Has 20 connections, and answers about good tokens alone."""

        slots = asyncio.Semaphore(20)

        async def identify(self, token: str) -> Identity | None:
            async with self.slots:
                self.asked.append(token)
                if token.startswith("bad"):
                    await self.gate.wait()
                return Identity("ada")

    directory = Slow()
    known = identities(directory, clock)
    await known.identify("good", "192.0.2.1")
    clock.now += 61
    directory.gate.clear()
    flood = [asyncio.create_task(known.identify(f"bad {n}", f"198.51.100.{n}")) for n in range(50)]
    await until(lambda: len(directory.asked) > 16)
    async with asyncio.timeout(1):
        assert await known.identify("good", "192.0.2.1") == Identity("ada")
    directory.gate.set()
    assert await asyncio.gather(*flood) == [Identity("ada")] * 50


async def test_known_token_outlasts_an_outage_for_the_grace(
    directory: Directory, clock: Clock[float]
) -> None:
    known = identities(directory, clock)
    start = clock.now
    await known.identify("good", "::1")
    directory.away = True
    for seconds in range(0, 900, 30):
        clock.now = start + seconds
        assert await known.identify("good", "::1") == Identity("ada")
    assert len(directory.asked) < 20, "each request waits for a provider that is away"
    clock.now = start + 901
    with pytest.raises(IdentityUnavailable):
        await known.identify("good", "::1")


async def test_revoked_token_ends_once_the_provider_is_back(
    directory: Directory, clock: Clock[float]
) -> None:
    known = identities(directory, clock)
    await known.identify("good", "::1")
    directory.away = True
    clock.now += 61
    assert await known.identify("good", "::1") == Identity("ada")
    directory.away = False
    directory.revoked.add("good")
    clock.now += 61
    assert await known.identify("good", "::1") is None
    directory.away = True
    clock.now += 61
    with pytest.raises(IdentityUnavailable):
        await known.identify("good", "::1")


async def test_outage_is_no_answer_about_unknown_tokens(directory: Directory, clock: Clock[float]) -> None:
    known = identities(directory, clock)
    directory.away = True
    with pytest.raises(IdentityUnavailable):
        await known.identify("good", "::1")
    directory.away = False
    assert await known.identify("good", "::1") == Identity("ada")


class Own(Directory):
    """Knows tokens of its own, by their prefix."""

    name = "own"
    prefix = "own_"

    async def identify(self, token: str) -> Identity | None:
        self.asked.append(token)
        return Identity("ada.sso", on_hub=False) if token == "own_good" else None


async def test_token_with_a_prefix_goes_to_its_provider_alone(
    directory: Directory, clock: Clock[float]
) -> None:
    own = Own()
    nothing: dict[str, Any] = {}
    known = Identities(directory, Settings(**nothing), clock, others=[directory, own])
    assert [await known.identify("own_good", "::1") for _ in range(2)] == [
        Identity("ada.sso", on_hub=False)
    ] * 2
    assert await known.identify("own_bad", "::1") is None
    assert await known.identify("good", "::1") == Identity("ada")
    assert (directory.asked, own.asked) == (["good"], ["own_good", "own_good", "own_bad"])
    with pytest.raises(IdentityUnavailable):
        await known.sees_model(Identity("ada.sso", on_hub=False), "own_good", "ada/model")


async def test_hub_has_no_names_of_single_sign_on(
    directory: Directory, clock: Clock[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = identities(directory, clock)
    found = [Identity("Ada.SSO"), Identity("ada", memberships=frozenset({"atlas.sso", "atlas"}))]

    async def identify(token: str) -> Identity:
        return found.pop(0)

    monkeypatch.setattr(directory, "identify", identify)
    with pytest.raises(Forbidden, match="not the hub's"):
        await known.identify("good 1", "::1")
    assert await known.identify("good 2", "::1") == Identity("ada", memberships=frozenset({"atlas"}))
