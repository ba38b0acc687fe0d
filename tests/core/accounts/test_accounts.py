"""Accounts: one sign-up, one grant, and bans."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from tests.database_work import analyze, work_of_database

from collidium import accounts
from collidium.accounts import Sort
from collidium.accounts.models import Account
from collidium.contracts.identity import Identity
from collidium.errors import Conflict, Forbidden, NotFound


async def test_fifty_first_sign_ins_at_once_give_one_grant(connected: str) -> None:
    seen = await asyncio.gather(*(accounts.recognise("alice", signup_grant=Decimal(10)) for _ in range(50)))
    assert {account.credits for account in seen} == {Decimal(10)}
    assert None not in {account.last_seen_at for account in seen}
    assert len(await accounts.entries(seen[0].id, limit=100)) == 1


async def test_without_a_grant_the_account_starts_empty(connected: str) -> None:
    account = await accounts.recognise("alice", signup_grant=Decimal(0))
    assert account.credits == 0
    assert await accounts.entries(account.id, limit=1) == []


async def test_a_baselines_account_has_no_grant_and_is_no_users(connected: str) -> None:
    marked = await asyncio.gather(*(accounts.mark_baseline("baselines") for _ in range(5)))
    assert {account.id for account in marked} == {marked[0].id}
    again = await accounts.recognise("Baselines", signup_grant=Decimal(10))
    assert (again.baseline, again.credits) == (True, 0)
    await accounts.recognise("alice", signup_grant=Decimal(10))
    with pytest.raises(Conflict, match="alice is a user's"):
        await accounts.mark_baseline("alice")


async def test_a_ban_holds_from_the_next_call_until_it_is_lifted(connected: str) -> None:
    await accounts.recognise("alice", signup_grant=Decimal(10))
    await accounts.set_banned("alice", True)
    with pytest.raises(Forbidden, match="alice"):
        await accounts.recognise("alice", signup_grant=Decimal(10))
    await accounts.set_banned("alice", False)
    assert (await accounts.recognise("alice", signup_grant=Decimal(10))).credits == 10


async def test_a_name_banned_before_its_first_sign_in_gets_nothing(connected: str) -> None:
    await accounts.set_banned("mallory", True)
    with pytest.raises(Forbidden):
        await accounts.recognise("mallory", signup_grant=Decimal(10))
    assert (await accounts.find("mallory")).credits == 0
    await accounts.set_banned("mallory", False)
    assert (await accounts.recognise("mallory", signup_grant=Decimal(10))).credits == 10


async def test_a_name_is_one_account_in_any_case(connected: str) -> None:
    await accounts.set_banned("Alice", True)
    for name in ("alice", "ALICE", "Alice"):
        with pytest.raises(Forbidden):
            await accounts.recognise(name, signup_grant=Decimal(10))
    await accounts.set_banned("ALICE", False)
    first = await accounts.recognise("alice", signup_grant=Decimal(10))
    assert first.hub_username == "alice"
    assert (await accounts.recognise("aLiCe", signup_grant=Decimal(10))).id == first.id
    assert (await accounts.find("Alice")).credits == 10


async def test_a_ban_during_a_transaction_is_seen(connected: str) -> None:
    account = await accounts.recognise("alice", signup_grant=Decimal(10))
    await accounts.require_not_banned(account.id)
    await accounts.set_banned("alice", True)
    with pytest.raises(Forbidden, match="alice"):
        await accounts.require_not_banned(account.id)


async def test_an_unknown_account_is_not_found(connected: str) -> None:
    with pytest.raises(NotFound, match="unknown"):
        await accounts.set_banned("unknown", False)
    for name in ("unknown", "a" * 97, "", "a b", "-a", "a\n", "\ud800", "ä"):
        with pytest.raises(NotFound):
            await accounts.find(name)


@pytest.mark.parametrize("name", ["a" * 97, "", "a b", "-a", "a\n", "\ud800", "ä"])
def test_an_identity_has_a_name_that_accounts_may_have(name: str) -> None:
    with pytest.raises(ValueError, match="named"):
        Identity(name)


@pytest.mark.parametrize(
    "query", [{"sort": Sort.CREDITS}, {"banned": True}, {"banned": True, "sort": Sort.NAME}], ids=str
)
async def test_account_lists_cost_the_same_among_many(connected: str, query: Any) -> None:
    async def add(count: int, *, banned: bool = False) -> None:
        begin = await Account.all().count()
        names = [f"user-{number:05}" for number in range(begin, begin + count)]
        await Account.bulk_create(
            [
                Account(hub_username=name, credits=number % 7, banned=banned)
                for number, name in enumerate(names)
            ]
        )

    async def look() -> int:
        await analyze()
        async with work_of_database() as work:
            _, cursor = await accounts.list_accounts(limit=10, **query)
            assert (await accounts.list_accounts(limit=10, cursor=cursor, **query))[0]
        return work.amount

    await add(25, banned=True)
    await add(300)
    few = await look()
    await add(2000)
    assert await look() < 1.5 * few
