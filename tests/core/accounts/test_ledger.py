"""The ledger is append-only and exact, and its sum is the balance."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counts import LONG
from tortoise.exceptions import IntegrityError

from collidium import accounts, database
from collidium.accounts import InsufficientCredits
from collidium.errors import Conflict, InvalidInput

GRANT = Decimal(10)


async def balance(name: str) -> Decimal:
    return (await accounts.find(name)).credits


async def test_an_entry_changes_the_balance_by_exactly_its_delta(connected: str) -> None:
    account = await accounts.recognise("alice", signup_grant=GRANT)
    entry = await accounts.post(account.id, Decimal("-0.001"), reason="admin_grant", reference="a", note="w")
    assert entry.balance_after == await balance("alice") == Decimal("9.999")
    newest = (await accounts.entries(account.id, limit=10))[0]
    assert (newest.delta, newest.reason, newest.note) == (Decimal("-0.001"), "admin_grant", "w")


async def test_no_charge_takes_a_balance_below_zero(connected: str) -> None:
    account = await accounts.recognise("alice", signup_grant=GRANT)
    with pytest.raises(InsufficientCredits, match=r"10\.001"):
        await accounts.post(account.id, Decimal("-10.001"), reason="simulation_charge", reference="a")
    assert await balance("alice") == GRANT
    assert len(await accounts.entries(account.id, limit=10)) == 1


@pytest.mark.parametrize("delta", ["NaN", "Infinity", "-Infinity", "0", "0.0001", "1e10", "-1e10"])
async def test_invalid_amounts_of_credits_are_rejected(connected: str, delta: str) -> None:
    account = await accounts.recognise("alice", signup_grant=GRANT)
    with pytest.raises(InvalidInput):
        await accounts.post(account.id, Decimal(delta), reason="admin_grant", reference="a")
    assert await balance("alice") == GRANT


async def test_the_same_reference_is_paid_once(connected: str) -> None:
    account = await accounts.recognise("alice", signup_grant=GRANT)
    posts = [
        accounts.post(account.id, Decimal(5), reason="benchmark_best", reference="s:metric") for _ in range(8)
    ]
    assert len({entry.id for entry in await asyncio.gather(*posts)}) == 1
    assert await balance("alice") == Decimal(15)
    with pytest.raises(Conflict):
        await accounts.post(account.id, Decimal(6), reason="benchmark_best", reference="s:metric")


async def test_concurrent_charges_spend_no_credit_twice(connected: str) -> None:
    account = await accounts.recognise("alice", signup_grant=GRANT)
    charges = [
        accounts.post(account.id, Decimal(-3), reason="simulation_charge", reference=str(i))
        for i in range(10)
    ]
    outcomes = await asyncio.gather(*charges, return_exceptions=True)
    assert sum(isinstance(outcome, InsufficientCredits) for outcome in outcomes) == 7
    assert await balance("alice") == Decimal(1)
    assert await accounts.audit() == []


async def test_a_disconnecting_caller_leaves_state_consistent(connected: str) -> None:
    account = await accounts.recognise("alice", signup_grant=GRANT)
    for i in range(20):
        task = asyncio.ensure_future(
            accounts.post(account.id, Decimal(1), reason="admin_grant", reference=str(i))
        )
        for _ in range(i):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await accounts.post(account.id, Decimal(1), reason="admin_grant", reference="last")
    entries = await accounts.entries(account.id, limit=100)
    assert entries[0].balance_after == sum(entry.delta for entry in entries)
    assert await accounts.audit() == []


@pytest.mark.parametrize(
    "statement", ["UPDATE credit_transactions SET delta = 1000", "DELETE FROM credit_transactions"]
)
async def test_the_database_refuses_to_change_an_entry(connected: str, statement: str) -> None:
    await accounts.recognise("alice", signup_grant=GRANT)
    with pytest.raises(IntegrityError, match="append-only"):
        await database.connection().execute_query(statement)


async def test_the_database_refuses_a_balance_below_zero(connected: str) -> None:
    await accounts.recognise("alice", signup_grant=GRANT)
    with pytest.raises(IntegrityError):
        await database.connection().execute_query("UPDATE accounts SET credits = -0.001")


async def test_the_audit_finds_a_balance_that_is_not_the_sum(connected: str) -> None:
    await accounts.recognise("alice", signup_grant=GRANT)
    await accounts.recognise("bob", signup_grant=GRANT)
    await database.connection().execute_query(
        "UPDATE accounts SET credits = 10.001 WHERE hub_username = 'bob'"
    )
    (mismatch,) = await accounts.audit()
    assert (mismatch.hub_username, mismatch.balance, mismatch.entries_sum) == (
        "bob",
        Decimal("10.001"),
        GRANT,
    )


amounts = st.decimals(Decimal("-20"), Decimal("20"), places=3).filter(bool)


# The function-scoped database is meant to be shared: every example plays with accounts of its own.
@settings(max_examples=100 if LONG else 10)
@given(rounds=st.lists(st.lists(st.tuples(st.sampled_from("ab"), amounts), max_size=6), max_size=4))
def test_whatever_interleaves_the_ledger_adds_up(
    migrated_database_url: str, rounds: list[list[tuple[str, Decimal]]]
) -> None:
    asyncio.run(_play(migrated_database_url, rounds))


_games = iter(range(10**9))


async def _play(url: str, rounds: list[list[tuple[str, Decimal]]]) -> None:
    game = next(_games)
    async with database.connected(url):
        for n, entries in enumerate(rounds):
            outcomes = await asyncio.gather(
                *(_post(f"{name}{game}", delta, f"{n}:{i}") for i, (name, delta) in enumerate(entries)),
                return_exceptions=True,
            )
            assert all(outcome is None or isinstance(outcome, InsufficientCredits) for outcome in outcomes)
            assert await accounts.audit() == []
            for name in {name for name, _ in entries}:
                assert await balance(f"{name}{game}") >= 0


async def _post(name: str, delta: Decimal, reference: str) -> None:
    account = await accounts.recognise(name, signup_grant=GRANT)
    await accounts.post(account.id, delta, reason="admin_grant", reference=reference)
