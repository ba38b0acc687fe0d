"""``collidium operator``: operators with names, scopes and tokens of their own."""

from __future__ import annotations

import click

from collidium.cli.context import client
from collidium.cli.options import ask, json_option, key_option, yes_option
from collidium.cli.output import note, print_json, show_items, show_message


@click.group()
def operator() -> None:
    """Add and withdraw operators; needs ADMIN_TOKEN, or the token of one with the scope all.

    Each works with the token of their own in ADMIN_TOKEN, and the audit log has their name.
    """


@operator.command()
@click.argument("name")
@click.option(
    *("--scopes", "scopes"), metavar="LIST", help="Of accounts, benchmarks, reports, simulations; or all."
)
@click.option("--challenge", metavar="NAME", help="Make an organiser, who may touch this challenge alone.")
@json_option
def add(name: str, scopes: str | None, challenge: str | None, as_json: bool) -> None:
    """Add operator NAME and print the token, alone on the last line. It is not shown again.

    \b
    collidium operator add anna --scopes accounts,reports
    collidium operator add otto --challenge jets-2026
    """
    if (scopes is None) == (challenge is None):
        raise click.UsageError("give one of --scopes and --challenge")
    wanted = [scope.strip() for scope in (scopes or "benchmarks").split(",")]
    with client() as server:
        added = server.admin_add_operator(name, wanted, challenge=challenge)
    if as_json:
        print_json(added)
    else:
        only = f", challenge {added.challenge} alone" if added.challenge else ""
        note(f"Operator {added.name} ({', '.join(added.scopes)}{only}). The token, for ADMIN_TOKEN:")
        click.echo(added.token)


@operator.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the operators that have tokens of their own, also withdrawn ones.

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
    show_items(found, columns, as_json=as_json)


@operator.command()
@click.argument("name")
@yes_option
@key_option
@json_option
def withdraw(name: str, yes: bool, idempotency_key: str | None, as_json: bool) -> None:
    """Withdraw operator NAME: the token is refused from the next call on.

    \b
    collidium operator withdraw anna
    """
    with client() as server:
        ask(f"Withdraw the token of operator {name}?", yes=yes)
        withdrawn = server.admin_withdraw_operator(name, idempotency_key=idempotency_key)
    show_message(withdrawn, f"Operator {withdrawn.name} is withdrawn.", as_json=as_json)
