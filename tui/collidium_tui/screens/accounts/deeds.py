"""What an operator does to an account: grants and deductions, a ban and its end."""

from __future__ import annotations

from functools import partial
from typing import Any

from collidium.errors import NotFound
from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.accounts.amounts import amount, problem_with
from collidium_tui.widgets.ask import Question
from collidium_tui.widgets.form import LONGEST_NOTE, Field, Form, needed


async def grant(screen: ConsoleScreen[Any], name: str) -> None:
    """Give credits, or take them, after the balance before and after was seen."""
    account = await screen.session.ask(lambda client: client.admin_account(name))
    fields = [
        Field(
            "amount",
            "Credits",
            partial(problem_with, balance=account.credits),
            hint="25, 0.5, or -10 to deduct",
            most_characters=24,
        ),
        Field("note", "Note", needed, hint="why; kept in the ledger", most_characters=LONGEST_NOTE),
    ]
    form = Form(
        f"Grant to {name}, or deduct", fields, "Go on", f"The balance is {account.credits:,} credits."
    )
    filled = await screen.fill_in(form)
    if filled is None:
        return
    delta, note = amount(filled["amount"]), filled["note"]
    deed = f"Deduct {-delta:,} credits from {name}" if delta < 0 else f"Grant {delta:,} credits to {name}"
    consequence = (
        f"Balance before: {account.credits:,}\nBalance after: {account.credits + delta:,}\nNote: {note}"
    )
    if await screen.confirm(Question(deed, consequence, "Deduct" if delta < 0 else "Grant")):
        granted = await screen.perform(
            lambda client, key: client.admin_grant(name, delta, note, idempotency_key=key)
        )
        if granted is not None:
            screen.notify(f"{name}: the balance is now {granted.new_balance:,} credits", markup=False)


async def ban(screen: ConsoleScreen[Any], name: str) -> None:
    """Ban an account, or a name that never signed in; asks for the reason."""
    consequence = (
        "Whatever this account asks from now on is refused (403), its token notwithstanding. Its requests "
        "under way go on: cancel them on the screen Requests if need be. Unbanning ends it."
    )
    if not await _is_known(screen, name):
        consequence = "This name never signed in here: it is banned in advance. " + consequence
    field = Field("reason", "Reason", needed, hint="kept in the audit log", most_characters=LONGEST_NOTE)
    filled = await screen.fill_in(Form(f"Ban {name}", [field], "Ban", consequence))
    if filled is not None:
        reason = filled["reason"]
        await screen.perform(
            lambda client, key: client.admin_ban(name, note=reason, idempotency_key=key), f"{name} is banned"
        )


async def unban(screen: ConsoleScreen[Any], name: str) -> None:
    """End a ban."""
    question = Question(
        f"Unban {name}", "What this account asks is answered again.", "Unban", reversible=True
    )
    if await screen.confirm(question):
        await screen.perform(
            lambda client, key: client.admin_ban(name, False, idempotency_key=key),
            f"{name} is not banned any more",
        )


async def _is_known(screen: ConsoleScreen[Any], name: str) -> bool:
    try:
        await screen.session.ask(lambda client: client.admin_account(name))
    except NotFound:
        return False
    return True
