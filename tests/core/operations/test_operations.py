"""Operator actions, each with an entry in the audit log."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from collidium import accounts, operations
from collidium.errors import Conflict, InvalidInput, NotFound


@pytest.fixture
async def alice(connected: str) -> accounts.AccountView:
    return await accounts.recognise("alice", signup_grant=Decimal(10))


async def test_a_grant_is_an_entry_with_the_operators_note(alice: accounts.AccountView) -> None:
    granted = await operations.grant("alice", Decimal("2.5"), "a talk", actor="admin", http_request_id="r1")
    (entry,) = await accounts.entries(alice.id, limit=1)
    assert (granted.transaction_id, granted.new_balance) == (entry.id, entry.balance_after)
    assert (entry.reason, entry.note, entry.balance_after) == ("admin_grant", "a talk", Decimal("12.5"))
    (logged,) = await operations.audit_log(limit=10)
    assert (logged.action, logged.target, logged.http_request_id) == ("grant", "alice", "r1")
    assert logged.details == {"delta": "2.5", "note": "a talk", "balance_after": "12.500"}


async def test_a_deduction_never_goes_below_zero_and_leaves_no_trace(alice: accounts.AccountView) -> None:
    with pytest.raises(Conflict, match="alice"):
        await operations.grant("alice", Decimal(-11), "fine", actor="admin", http_request_id="r1")
    with pytest.raises(InvalidInput):
        await operations.grant("alice", Decimal("NaN"), "fun", actor="admin", http_request_id="r2")
    with pytest.raises(NotFound):
        await operations.grant("unknown", Decimal(-1), "who", actor="admin", http_request_id="r3")
    assert await operations.audit_log(limit=10) == []


async def test_bans_and_the_kill_switch_are_audited(alice: accounts.AccountView) -> None:
    await operations.ban("alice", True, actor="admin", http_request_id="r1")
    await operations.freeze(True, actor="admin", http_request_id="r2")
    assert await operations.is_frozen()
    await operations.freeze(False, actor="admin", http_request_id="r3")
    assert not await operations.is_frozen()
    audited = await operations.audit_log(limit=10)
    assert [logged.action for logged in audited] == ["unfreeze", "freeze", "ban"]
    assert [logged.action for logged in await operations.audit_log(limit=1, before=audited[0].id)] == [
        "freeze"
    ]


async def test_empty_details_are_not_recorded(alice: accounts.AccountView) -> None:
    details = {"reason": "", "note": None, "credits_paid": "0", "closes": 0}
    await operations.record("admin", "rescore", "spring-2027", details, "r1")
    (logged,) = await operations.audit_log(limit=10)
    assert logged.details == {"credits_paid": "0", "closes": 0}


async def test_a_freeze_keeps_its_operator_when_a_note_is_added(connected: str) -> None:
    await operations.freeze(True, "the hub is down", actor="grace", http_request_id="r1")
    first = await operations.current_freeze()
    assert (first.by, first.note) == ("grace", "the hub is down")
    await operations.freeze(True, actor="linus", http_request_id="r2")
    assert await operations.current_freeze() == first
    await operations.freeze(True, "a disk is being changed", actor="linus", http_request_id="r3")
    again = await operations.current_freeze()
    assert again == replace(first, note="a disk is being changed")
    logged = (await operations.audit_log(limit=1))[0]
    assert (logged.actor, logged.details) == ("linus", {"note": "a disk is being changed"})
    await operations.freeze(False, actor="linus", http_request_id="r4")
    await operations.freeze(True, actor="linus", http_request_id="r5")
    assert (await operations.current_freeze()).by == "linus"


async def test_the_audit_log_spells_a_name_as_its_account_does(alice: accounts.AccountView) -> None:
    await operations.grant("ALICE", Decimal(1), "a talk", actor="admin", http_request_id="r1")
    await operations.ban("Alice", True, actor="admin", http_request_id="r2")
    await operations.ban("aLICE", False, actor="admin", http_request_id="r3")
    with pytest.raises(Conflict, match="alice"):
        await operations.grant("ALICE", Decimal(-99), "fine", actor="admin", http_request_id="r4")
    assert {logged.target for logged in await operations.audit_log(limit=10)} == {"alice"}


async def test_operator_by_sign_on_gets_the_neutral_name(connected: str) -> None:
    for actor in ("ada.sso", "ada"):
        await operations.record(actor, "freeze", "submissions", {"note": "mail"}, "")
    await operations.forget("ada.sso", "erased-1")
    await operations.forget("ada", "erased-2")
    assert [entry.actor for entry in await operations.audit_log(limit=2)] == ["ada", "erased-1"]
