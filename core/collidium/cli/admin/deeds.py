"""``collidium admin freeze``, ``unfreeze``, ``grant``, ``ban`` and ``unban``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

import click

from collidium.cli.calling import client, key_option
from collidium.cli.output import cell, json_option, print_json

Command = TypeVar("Command", bound=Callable[..., Any])


def yes_option(command: Command) -> Command:
    """Add ``--yes`` to a command that asks first."""
    return click.option("--yes", is_flag=True, help="Do not ask first.")(command)


def ask(question: str, *, yes: bool) -> None:
    """Go on if ``yes``, if nobody sits at a terminal, or if whoever does agrees; else raises click.Abort."""
    if not yes and sys.stdin.isatty():
        click.confirm(question, abort=True, err=True)


what_for = click.option("--note", "what_for", metavar="TEXT", help="What for; operators see it.")


class Credits(click.ParamType[Decimal]):
    """An amount of credits, or of what is taken."""

    name = "credits"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite():
            self.fail(f"{value!r} is no amount of credits: write for example 2.5 or -2.5", param, ctx)
        return amount


@click.command()
@what_for
@yes_option
@key_option
@json_option
def freeze(what_for: str | None, yes: bool, idempotency_key: str | None, as_json: bool) -> None:
    """Take no new simulation requests, from the moment this returns; jobs under way go on.

    \b
    collidium admin freeze --note "the hub is down"
    """
    with client() as server:
        ask(f"Freeze {server.backend}? Nobody can order events until it is unfrozen.", yes=yes)
        frozen = server.admin_freeze(note=what_for, idempotency_key=idempotency_key)
    _tell(frozen, "Frozen: no new simulation requests are accepted.", as_json=as_json)


@click.command()
@what_for
@click.option("--yes", is_flag=True, help="Accepted as by freeze; nothing is asked.", expose_value=False)
@key_option
@json_option
def unfreeze(what_for: str | None, idempotency_key: str | None, as_json: bool) -> None:
    """Take simulation requests again.

    \b
    collidium admin unfreeze
    """
    with client() as server:
        frozen = server.admin_freeze(False, note=what_for, idempotency_key=idempotency_key)
    _tell(frozen, "Not frozen: simulation requests are accepted.", as_json=as_json)


# A deduction begins with a minus, which is no option here.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("account", metavar="ACCOUNT")
@click.argument("credits_", metavar="CREDITS", type=Credits())
@click.option("--note", "what_for", metavar="TEXT", required=True, help="What for; the account sees it.")
@yes_option
@key_option
@json_option
def grant(
    account: str, credits_: Decimal, what_for: str, yes: bool, idempotency_key: str | None, as_json: bool
) -> None:
    """Give CREDITS to ACCOUNT, or take them where they are negative; never below zero.

    \b
    collidium admin grant alice 25 --note "for the tutorial"
    collidium admin grant alice -2.5 --note "granted twice"
    """
    with client() as server:
        if credits_ < 0:
            ask(f"Take {cell(-credits_)} credits from {account}?", yes=yes)
        granted = server.admin_grant(account, credits_, what_for, idempotency_key=idempotency_key)
    told = f"{granted.hub_username} has {cell(granted.new_balance)} credits."
    _tell(granted, told, as_json=as_json)


@click.command()
@click.argument("account", metavar="ACCOUNT")
@what_for
@yes_option
@key_option
@json_option
def ban(account: str, what_for: str | None, yes: bool, idempotency_key: str | None, as_json: bool) -> None:
    """Refuse everything that ACCOUNT asks; also a name that has not signed in yet.

    \b
    collidium admin ban mallory --note "ordered in a loop"
    """
    with client() as server:
        ask(f"Ban {account}? Its jobs under way go on; everything else it asks is refused.", yes=yes)
        banned = server.admin_ban(account, note=what_for, idempotency_key=idempotency_key)
    _tell(banned, f"{banned.hub_username} is banned.", as_json=as_json)


@click.command()
@click.argument("account", metavar="ACCOUNT")
@what_for
@key_option
@json_option
def unban(account: str, what_for: str | None, idempotency_key: str | None, as_json: bool) -> None:
    """End the ban of ACCOUNT.

    \b
    collidium admin unban mallory
    """
    with client() as server:
        banned = server.admin_ban(account, False, note=what_for, idempotency_key=idempotency_key)
    _tell(banned, f"{banned.hub_username} is not banned.", as_json=as_json)


def _tell(record: object, told: str, *, as_json: bool) -> None:
    if as_json:
        print_json(record)
    else:
        click.echo(told)
