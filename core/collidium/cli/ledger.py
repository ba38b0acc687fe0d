"""``collidium ledger``: the credit ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from collidium.cli.operate import on_platform
from collidium.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from collidium.accounts import Mismatch
    from collidium.platform import Platform
    from collidium.simulations import TotalMismatch


@click.group()
def ledger() -> None:
    """Prove the credit ledger, and what is counted beside it."""


@ledger.command()
@json_option
@click.pass_context
def audit(ctx: click.Context, as_json: bool) -> None:
    """Prove that every balance and every running total is what it is made of; ends with 1 if one is not.

    Balances are compared with their ledger entries, totals of usage with the simulation requests.

    \b
    collidium ledger audit
    """

    async def run(_: Platform) -> tuple[list[Mismatch], list[TotalMismatch]]:
        from collidium import accounts, simulations

        return await accounts.audit(), await simulations.audit()

    balances, totals = on_platform(run)
    if as_json:
        print_json({"mismatches": balances, "totals": totals})
    else:
        _show(balances, totals)
    ctx.exit(1 if balances or totals else 0)


def _show(balances: Sequence[Mismatch], totals: Sequence[TotalMismatch]) -> None:
    if balances:
        print_table(
            ("account", "balance", "sum of entries"),
            ((m.hub_username, m.balance, m.entries_sum) for m in balances),
        )
    else:
        click.echo("Every balance is the sum of its entries.")
    if totals:
        print_table(("total", "kept", "counted anew"), ((t.total, t.kept, t.counted) for t in totals))
    else:
        click.echo("Every running total is the sum of its requests.")
