"""Idempotency keys: one action and one response for each key."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counts import LONG

from collidium import accounts
from collidium.accounts import idempotency
from collidium.database import transactional
from collidium.errors import Conflict, InvalidInput

_serial = count()


class Killed(Exception):
    """Ends a transaction just before it would commit."""


@transactional
async def pay(owner: str, key: str | None, delta: int, *, killed: bool = False) -> int:
    """Grant credits once for the key; the answer is the entry's id."""
    if (answered := await idempotency.recall(owner, key, {"delta": delta})) is not None:
        return int(answered)
    account = await accounts.find("alice")
    reference = f"test{next(_serial)}"
    entry = await accounts.post(account.id, Decimal(delta), reason="admin_grant", reference=reference)
    await idempotency.remember(owner, key, entry.id)
    if killed:
        raise Killed
    return entry.id


@pytest.fixture
async def alice(connected: str) -> accounts.AccountView:
    return await accounts.recognise("alice", signup_grant=Decimal(0))


@settings(max_examples=60 if LONG else 6, database=None)
@given(
    rounds=st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 2), st.booleans()), min_size=1, max_size=5),
        min_size=1,
        max_size=4,
    )
)
async def test_any_interleaving_pays_once_for_each_key(
    alice: accounts.AccountView, rounds: list[list[tuple[str, int, bool]]]
) -> None:
    owner, before = f"operator:{next(_serial)}", (await accounts.find("alice")).credits
    paid: dict[str, tuple[int, int]] = {}
    for calls in rounds:
        answers = await asyncio.gather(
            *(pay(owner, key, delta, killed=killed) for key, delta, killed in calls), return_exceptions=True
        )
        for (key, delta, killed), answer in zip(calls, answers, strict=True):
            if isinstance(answer, int):
                assert paid.setdefault(key, (delta, answer)) == (delta, answer)
            else:
                assert isinstance(answer, Conflict) or (killed and isinstance(answer, Killed))
        for (key, delta, _), answer in zip(calls, answers, strict=True):
            assert not isinstance(answer, Conflict) or paid[key][0] != delta
    after = (await accounts.find("alice")).credits
    assert after - before == sum(delta for delta, _ in paid.values())


async def test_owners_do_not_share_keys(alice: accounts.AccountView) -> None:
    assert await pay("operator:a", "key", 1) == await pay("operator:a", "key", 1)
    assert await pay("operator:a", "key", 1) != await pay("operator:b", "key", 1)
    assert await pay("operator:a", None, 1) != await pay("operator:a", None, 1)


async def test_the_number_of_keys_of_an_owner_is_bounded(
    alice: accounts.AccountView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "KEYS_KEPT", 3)
    await pay("operator:other", "key", 1)
    first, *_ = [await pay("operator:a", f"key{number}", 1) for number in range(5)]
    kept = await idempotency.IdempotencyKey.filter(owner="operator:a").order_by("id").values_list("key")
    assert kept == [("key2",), ("key3",), ("key4",)]
    assert await idempotency.is_known("operator:other", "key")
    assert await pay("operator:a", "key0", 1) != first


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 129, "line\nbreak", "\0"])
async def test_a_malformed_key_is_rejected(key: str, alice: accounts.AccountView) -> None:
    with pytest.raises(InvalidInput, match="Idempotency-Key"):
        await pay("operator:a", key, 1)
    with pytest.raises(InvalidInput, match="Idempotency-Key"):
        await idempotency.is_known("operator:a", key)
