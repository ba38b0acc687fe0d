"""``collidium ledger``: the credit ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collidium.cli.operate import on_platform
from collidium.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from collidium.accounts import Mismatch
    from collidium.platform import Platform


@click.group()
def ledger() -> None:
    """Prove the credit ledger."""


@ledger.command()
@json_option
@click.pass_context
def audit(ctx: click.Context, as_json: bool) -> None:
    """Prove that every balance is the sum of its ledger entries; ends with 1 if one is not.

    \b
    collidium ledger audit
    """

    async def run(_: Platform) -> list[Mismatch]:
        from collidium import accounts

        return await accounts.audit()

    mismatches = on_platform(run)
    if as_json:
        print_json({"mismatches": mismatches})
    elif mismatches:
        print_table(
            ("account", "balance", "sum of entries"),
            ((m.hub_username, m.balance, m.entries_sum) for m in mismatches),
        )
    else:
        click.echo("Every balance is the sum of its entries.")
    ctx.exit(1 if mismatches else 0)
