"""``collidium admin freeze``, ``grant``, ``ban`` and ``refund``, and ``collidium operator``."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from collidium.cli.context import client
from collidium.cli.options import CREDITS, TIME, ask, json_option, key_option, yes_option
from collidium.cli.output import (
    cell,
    json_wanted,
    note,
    print_items,
    print_json,
    show_items,
    show_message,
    show_value,
)
from collidium.presentation import consequences

if TYPE_CHECKING:
    from collidium.client import Operator, Refunds

what_for = click.option("--note", "what_for", metavar="TEXT", help="Reason, shown to operators.")


@click.command()
@what_for
@yes_option
@key_option
@json_option
def freeze(what_for: str | None, yes: bool, idempotency_key: str | None) -> None:
    """Reject new simulation requests from now on; running jobs continue.

    \b
    collidium admin freeze --note "the hub is down"
    """
    with client() as server:
        ask(f"Freeze {server.backend}? {consequences.FREEZE}", yes=yes)
        frozen = server.admin_freeze(note=what_for, idempotency_key=idempotency_key)
    show_message(frozen, "Frozen: no new simulation requests are accepted.")


@click.command()
@what_for
@click.option("--yes", is_flag=True, help="No effect; accepted as by freeze.", expose_value=False)
@key_option
@json_option
def unfreeze(what_for: str | None, idempotency_key: str | None) -> None:
    """Accept simulation requests again.

    \b
    collidium admin unfreeze
    """
    with client() as server:
        frozen = server.admin_freeze(False, note=what_for, idempotency_key=idempotency_key)
    show_message(frozen, "Not frozen: simulation requests are accepted.")


# A negative amount begins with a minus, but is not an option.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("account", metavar="ACCOUNT")
@click.argument("credits_", metavar="CREDITS", type=CREDITS)
@click.option("--note", "what_for", metavar="TEXT", required=True, help="Reason, shown to the account.")
@yes_option
@key_option
@json_option
def grant(account: str, credits_: Decimal, what_for: str, yes: bool, idempotency_key: str | None) -> None:
    """Add CREDITS to the balance of ACCOUNT. A negative amount deducts, but never below zero.

    ACCOUNT may be a name that has not signed in yet.

    \b
    collidium admin grant alice 25 --note "for the tutorial"
    collidium admin grant alice -2.5 --note "granted twice"
    """
    with client() as server:
        if credits_ < 0:
            ask(f"Take {cell(-credits_)} credits from {account}?", yes=yes)
        granted = server.admin_grant(account, credits_, what_for, idempotency_key=idempotency_key)
    show_message(granted, f"{granted.hub_username} has {cell(granted.new_balance)} credits.")
    if not granted.signed_in and not json_wanted():
        note(f"{granted.hub_username} has not signed in yet: check the name.")


@click.command()
@click.argument("account", metavar="ACCOUNT")
@what_for
@yes_option
@key_option
@json_option
def ban(account: str, what_for: str | None, yes: bool, idempotency_key: str | None) -> None:
    """Reject all calls of ACCOUNT, which may be a name that has not signed in yet.

    \b
    collidium admin ban mallory --note "ordered in a loop"
    """
    with client() as server:
        ask(f"Ban {account}? {consequences.BAN}.", yes=yes)
        banned = server.admin_ban(account, note=what_for, idempotency_key=idempotency_key)
    show_message(banned, f"{banned.hub_username} is banned.")


@click.command()
@click.argument("account", metavar="ACCOUNT")
@what_for
@key_option
@json_option
def unban(account: str, what_for: str | None, idempotency_key: str | None) -> None:
    """End the ban of ACCOUNT.

    \b
    collidium admin unban mallory
    """
    with client() as server:
        was_banned = json_wanted() or server.admin_account(account).banned
        banned = server.admin_ban(account, False, note=what_for, idempotency_key=idempotency_key)
    done = "is no longer banned." if was_banned else "was not banned: it may call as before."
    show_message(banned, f"{banned.hub_username} {done}")


@click.command()
@click.option(
    "--from", "begin", type=TIME, required=True, help="Start of the period, for example 2026-11-21T09:00Z."
)
@click.option("--to", "end", type=TIME, help="End of the period; default: now.")
@click.option("--apply", is_flag=True, help="Refund; default: only show.")
@click.option("--note", "what_for", metavar="TEXT", help="Reason, shown to the accounts.")
@yes_option
@key_option
@json_option
def refund(
    begin: datetime,
    end: datetime | None,
    apply: bool,
    what_for: str | None,
    yes: bool,
    idempotency_key: str | None,
) -> None:
    """Show the remaining charges of requests that failed in a period; refund them with --apply.

    Failures of the platform are refunded automatically. This command finds failures that count as the user's,
    for example a token without write access or a repository name that was taken. It refunds exactly the
    charges that it shows; if they change before the refund, it refunds nothing and exits with 3.

    \b
    collidium admin refund --from 2026-11-21T09:00Z --to 2026-11-21T11:30Z
    collidium admin refund --from 2026-11-21T09:00Z --to 2026-11-21T11:30Z --apply --note "the hub was down"
    """
    until = end or datetime.now(UTC)
    with client() as server:
        found = server.admin_refunds(begin, until)
        if not found.requests and not json_wanted():
            show_message(found, "Nothing to refund: no failed request of this period has a charge left.")
            return
        if apply:
            if not json_wanted():
                _print_refunds(found)
            ask(f"Refund {cell(found.total)} credits for {len(found.requests)} requests?", yes=yes)
            found = server.admin_refunds(
                begin, until, apply=True, digest=found.digest, note=what_for, idempotency_key=idempotency_key
            )
    if json_wanted():
        print_json(found)
    elif apply:
        click.echo(f"Refunded {cell(found.total)} credits for {len(found.requests)} requests.")
    else:
        _print_refunds(found)
        note(f"{cell(found.total)} credits in total. Nothing was refunded: add --apply to refund.")


def _print_refunds(found: Refunds) -> None:
    columns = {
        "request": "request_id",
        "account": "hub_username",
        "channel": "channel",
        "failed": "failed_at",
        "charged": "credits_charged",
        "refunded": "credits_refunded",
        "left": "refund",
        "reason": "reason",
    }
    print_items(found.requests, columns)


@click.group()
def operator() -> None:
    """Add and withdraw operators; needs ADMIN_TOKEN with the token of an operator with scope all.

    Each operator sets ADMIN_TOKEN to a personal token, and is named in the audit log.
    """


@operator.command()
@click.argument("name")
@click.option("--scopes", metavar="LIST", help="Some of accounts, benchmarks, reports, simulations; or all.")
@click.option("--challenge", metavar="NAME", help="Make an organiser, with access to this challenge only.")
@json_option
def add(name: str, scopes: str | None, challenge: str | None) -> None:
    """Add operator NAME and print the token on the last line. It is not shown again.

    \b
    collidium operator add anna --scopes accounts,reports
    collidium operator add otto --challenge jets-2026
    """
    if (scopes is None) == (challenge is None):
        raise click.UsageError("give one of --scopes and --challenge")
    wanted = [scope.strip() for scope in (scopes or "benchmarks").split(",")]
    with client() as server:
        added = server.admin_add_operator(name, wanted, challenge=challenge)
    show_value(added, _print_operator)


def _print_operator(added: Operator) -> None:
    only = f", only challenge {added.challenge}" if added.challenge else ""
    note(f"Operator {added.name} ({', '.join(added.scopes)}{only}). The token, for ADMIN_TOKEN:")
    click.echo(added.token)


@operator.command("list")
@json_option
def list_() -> None:
    """List the operators, including withdrawn ones.

    \b
    collidium operator list
    """
    with client() as server:
        found = server.admin_operators().items
    columns = {
        "operator": "name",
        "scopes": "scopes",
        "challenge": "challenge",
        "since": "created_at",
        "withdrawn": "withdrawn_at",
    }
    show_items(found, columns)


@operator.command()
@click.argument("name")
@yes_option
@key_option
@json_option
def withdraw(name: str, yes: bool, idempotency_key: str | None) -> None:
    """Withdraw operator NAME: the token is no longer accepted.

    \b
    collidium operator withdraw anna
    """
    with client() as server:
        ask(f"Withdraw the token of operator {name}?", yes=yes)
        withdrawn = server.admin_withdraw_operator(name, idempotency_key=idempotency_key)
    show_message(withdrawn, f"Operator {withdrawn.name} is withdrawn.")
