"""Accounts: found while typing, looked into, granted to, banned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests.tui import seeding
from tests.tui.consoles import LARGE, SMALL, matches, shows, signed_in, text, types
from textual.pilot import Pilot

from collidium import accounts
from collidium.accounts.models import Account, CreditTransaction
from collidium.client import Client
from collidium.testing.server import ServerProcess

HOSTILE = "[red]x[/red] [/] \x1b[31m\x9b31m\u202e\a"


def sign_up(server: ServerProcess, *names: str) -> None:
    """Accounts of 10 credits, the last one newest."""

    async def work() -> None:
        for name in names:
            await accounts.recognise(name, signup_grant=Decimal(10))

    seeding.seed(server, work())


async def search(pilot: Pilot[None], name: str) -> None:
    await pilot.press("slash", *name, "enter")


async def test_a_search_finds_parts_of_names_page_by_page(backend: ServerProcess) -> None:
    sign_up(backend, *(f"searched{number:02d}" for number in range(60)), "someone")
    async with signed_in(backend, "Accounts") as pilot:
        await pilot.press("slash", *"RCHED")
        await shows(pilot, "searched59", "page 1")
        await pilot.press("enter")
        assert "someone" not in text(pilot)
        await pilot.press("n")
        await shows(pilot, "searched09", "page 2")
        await pilot.press("slash", "escape")
        await shows(pilot, "someone", "page 1")


async def test_no_account_is_found(backend: ServerProcess) -> None:
    async with signed_in(backend, "Accounts") as pilot:
        await search(pilot, "unknown-at-all")
        await shows(pilot, "No account matches 'unknown-at-all'", "b bans")
        await pilot.press("g", "enter")
        assert "Grant" not in text(pilot).replace("g Grant", "")


async def test_only_the_banned_are_shown(backend: ServerProcess, operator: Client) -> None:
    sign_up(backend, "kim-good", "kim-bad")
    operator.admin_ban("kim-bad")
    async with signed_in(backend, "Accounts") as pilot:
        await search(pilot, "kim")
        await shows(pilot, "kim-good", "kim-bad", "all")
        await pilot.press("f")
        await shows(pilot, "ONLY BANNED", "1 account━")
        assert "kim-good" not in text(pilot)
        await pilot.press("f")
        await shows(pilot, "kim-good")


async def test_a_grant_shows_the_balance_before_and_after(backend: ServerProcess, operator: Client) -> None:
    sign_up(backend, "gina")
    async with signed_in(backend, "Accounts") as pilot:
        await search(pilot, "gina")
        await shows(pilot, "gina")
        await pilot.press("g")
        await shows(pilot, "Grant to gina", "The balance is 10")
        for typed, words in (
            ("nan", "must be a number like"),
            ("1e9", "must be a number like"),
            ("99999999999", "must be at most"),
            ("0.0001", "at most three"),
            ("-10.001", "exceeds the balance"),
            (HOSTILE, "must be a number like"),
        ):
            await types(pilot, "amount", typed)
            await pilot.press("enter")
            await shows(pilot, words, "Note: is needed")
        await types(pilot, "amount", "-2.5")
        await types(pilot, "note", HOSTILE)
        await pilot.press("enter")
        await shows(pilot, "Deduct 2.5 credits from gina", "Balance before: 10", "Balance after: 7.5")
        assert operator.admin_account("gina").credits == 10
        await pilot.press("y")
        await shows(pilot, "gina: the balance is now 7.5")
    assert operator.admin_account("gina").credits == Decimal("7.5")
    entry = operator.admin_transactions("gina", limit=1)[0]
    assert (entry.delta, entry.reason, entry.note) == (Decimal("-2.5"), "admin_grant", HOSTILE)


async def test_what_was_asked_and_not_confirmed_is_not_done(backend: ServerProcess, operator: Client) -> None:
    sign_up(backend, "hugo")
    async with signed_in(backend, "Accounts") as pilot:
        await search(pilot, "hugo")
        await shows(pilot, "hugo")
        await pilot.press("g")
        await shows(pilot, "Grant to hugo")
        await types(pilot, "amount", "5")
        await types(pilot, "note", "a gift")
        await pilot.press("enter")
        await shows(pilot, "Balance after: 15")
        await pilot.press("n")
        await pilot.press("b")
        await shows(pilot, "Ban hugo")
        await pilot.press("escape")
        await shows(pilot, "Accounts")
    account = operator.admin_account("hugo")
    assert (account.credits, account.banned) == (Decimal(10), False)


async def test_a_ban_and_its_end(backend: ServerProcess, operator: Client) -> None:
    sign_up(backend, "ivan")
    async with signed_in(backend, "Accounts") as pilot:
        await search(pilot, "ivan")
        await shows(pilot, "ivan")
        await pilot.press("b")
        await shows(pilot, "Ban ivan", "rejected (403)")
        await types(pilot, "reason", "floods the queue")
        await pilot.press("enter")
        await shows(pilot, "BANNED")
        assert operator.admin_account("ivan").banned
        assert operator.admin_audit(limit=1)[0].details["note"] == "floods the queue"
        await pilot.press("enter")
        await shows(pilot, "*** BANNED ***")
        await pilot.press("b")
        await shows(pilot, "Unban ivan")
        await pilot.press("y")
        await shows(pilot, "not banned")
    assert not operator.admin_account("ivan").banned


async def test_a_name_is_banned_in_advance(backend: ServerProcess, operator: Client) -> None:
    async with signed_in(backend, "Accounts") as pilot:
        await search(pilot, "troll")
        await shows(pilot, "No account matches 'troll'")
        await pilot.press("b")
        await shows(pilot, "Ban troll", "has not signed in yet")
        await types(pilot, "reason", "announced it")
        await pilot.press("enter")
        await shows(pilot, "BANNED")
    assert operator.admin_account("troll").banned


# -- how it looks -------------------------------------------------------------------------------------

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def looked_at(backend: ServerProcess) -> ServerProcess:
    """Accounts whose names begin with ``look``, and the ledger of the first one, all of one day."""

    async def work() -> None:
        for number, name in enumerate(("look-ada", "look-ben", "look-" + "x" * 91)):
            at = NOON + timedelta(minutes=number)
            account = await Account.create(
                hub_username=name, created_at=at, signed_up_at=at, last_seen_at=at, banned=number == 1
            )
            for delta, reason, note in (
                ("10", "signup_grant", ""),
                ("-3.5", "simulation_charge", ""),
                ("1250", "admin_grant", "[red]for[/red] the \x1b[31mworkshop"),
            ):
                account.credits += Decimal(delta)
                await CreditTransaction.create(
                    account_id=account.id,
                    delta=Decimal(delta),
                    balance_after=account.credits,
                    reason=reason,
                    reference=reason,
                    note=note,
                    created_at=at,
                )
            await account.save()

    seeding.seed(backend, work())
    return backend


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_how_accounts_look(looked_at: ServerProcess, size: tuple[int, int]) -> None:
    async with signed_in(looked_at, "Accounts", size=size, now=lambda: NOON) as pilot:
        await search(pilot, "look-")
        await shows(pilot, "3 accounts")
        await matches(pilot, f"accounts-{size[0]}")
        await pilot.press("end", "enter")
        await shows(pilot, "not banned", "3 ledger entries")
        await matches(pilot, f"account-{size[0]}")
