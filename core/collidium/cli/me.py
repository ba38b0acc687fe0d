"""``collidium me``: the caller's account and ledger."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, print_json, print_record, print_table
from collidium.cli.text import short_reference


@click.command()
@click.option("--transactions", is_flag=True, help="Show the ledger, newest first, instead.")
@limit_option("entries")
@json_option
def me(transactions: bool, limit: int, as_json: bool) -> None:
    """Show your account, or its ledger.

    \b
    collidium me
    collidium me --transactions --limit 100
    """
    with client() as server:
        if transactions:
            entries = server.transactions(limit=limit)
            if as_json:
                print_json(entries.items)
            else:
                print_table(
                    ("when", "credits", "reason", "for", "note", "balance"),
                    (
                        (
                            e.created_at,
                            e.delta,
                            e.reason,
                            short_reference(e.reference or "-"),
                            e.note,
                            e.balance_after,
                        )
                        for e in entries
                    ),
                )
            return
        account = server.me()
    if as_json:
        print_json(account)
    else:
        print_record(
            {
                "account": account.hub_username,
                "credits": account.credits,
                "banned": account.banned,
                "since": account.created_at,
                "server": server.backend,
            }
        )
