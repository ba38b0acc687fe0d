"""Operator actions on an account: grant, deduct, ban, unban; and the amounts that operators type."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from typing import Any, Final

from collidium.errors import NotFound
from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.ask import Question
from collidium_tui.widgets.form import LONGEST_NOTE, Field, Form, needed

#: The maximum of the server.
LARGEST: Final = Decimal(10) ** 9

# Plain digits: 1e9, nan or ٣ are easily misread.
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")


def amount(typed: str) -> Decimal:
    """Credits to be granted, or deducted when negative. Raises ValueError that says what is wrong."""
    if not _NUMBER.fullmatch(typed):
        raise ValueError("is a number like 25, 0.5 or -10")
    delta = Decimal(typed)
    if delta == 0:
        raise ValueError("0 changes nothing")
    if abs(delta) > LARGEST:
        raise ValueError(f"is at most {LARGEST:,} credits")
    if delta != delta.quantize(Decimal("0.001")):
        raise ValueError("has at most three decimal places")
    return delta


def problem_with(typed: str, balance: Decimal) -> str | None:
    """What is wrong with a grant to an account with that balance; None: nothing."""
    try:
        after = balance + amount(typed)
    except ValueError as error:
        return str(error)
    if after < 0:
        return f"takes more than there is: the balance is {balance:,}"
    if after > LARGEST:
        return f"no balance may exceed {LARGEST:,} credits"
    return None


async def grant(screen: ConsoleScreen[Any], name: str) -> None:
    """Grant or deduct credits, after showing the balance before and after."""
    account = await screen.session.call(lambda client: client.admin_account(name))
    fields = [
        Field(
            "amount",
            "Credits",
            partial(problem_with, balance=account.credits),
            hint="25, 0.5, or -10 to deduct",
            max_length=24,
        ),
        Field("note", "Note", needed, hint="why; kept in the ledger", max_length=LONGEST_NOTE),
    ]
    form = Form(
        f"Grant to {name}, or deduct", fields, "Continue", f"The balance is {account.credits:,} credits."
    )
    filled = await screen.fill_in(form)
    if filled is None:
        return
    delta, note = amount(filled["amount"]), filled["note"]
    title = f"Deduct {-delta:,} credits from {name}" if delta < 0 else f"Grant {delta:,} credits to {name}"
    consequence = (
        f"Balance before: {account.credits:,}\nBalance after: {account.credits + delta:,}\nNote: {note}"
    )
    if await screen.confirm(Question(title, consequence, "Deduct" if delta < 0 else "Grant")):
        granted = await screen.perform(
            lambda client, key: client.admin_grant(name, delta, note, idempotency_key=key)
        )
        if granted is not None:
            screen.notify(f"{name}: the balance is now {granted.new_balance:,} credits", markup=False)


async def ban(screen: ConsoleScreen[Any], name: str) -> None:
    """Ban an account, or a name that never signed in; asks for the reason."""
    consequence = (
        "All calls of this account are rejected (403) from now on, whatever its token. Its simulation "
        "requests continue: cancel them on the screen Requests if needed. Unbanning ends it."
    )
    if not await _is_known(screen, name):
        consequence = "This name never signed in here: it is banned in advance. " + consequence
    field = Field("reason", "Reason", needed, hint="kept in the audit log", max_length=LONGEST_NOTE)
    filled = await screen.fill_in(Form(f"Ban {name}", [field], "Ban", consequence))
    if filled is not None:
        reason = filled["reason"]
        await screen.perform(
            lambda client, key: client.admin_ban(name, note=reason, idempotency_key=key), f"{name} is banned"
        )


async def unban(screen: ConsoleScreen[Any], name: str) -> None:
    """End a ban."""
    question = Question(
        f"Unban {name}", "Calls of this account are accepted again.", "Unban", reversible=True
    )
    if await screen.confirm(question):
        await screen.perform(
            lambda client, key: client.admin_ban(name, False, idempotency_key=key),
            f"{name} is no longer banned",
        )


async def _is_known(screen: ConsoleScreen[Any], name: str) -> bool:
    try:
        await screen.session.call(lambda client: client.admin_account(name))
    except NotFound:
        return False
    return True
