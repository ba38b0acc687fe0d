"""``collidium ledger``: the credit ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from collidium.cli.context import on_platform
from collidium.cli.options import json_option
from collidium.cli.output import print_items, print_json

if TYPE_CHECKING:
    from collidium.accounts import Mismatch
    from collidium.platform import Platform
    from collidium.simulations import TotalMismatch


@click.group()
def ledger() -> None:
    """Audit the credit ledger and the running totals."""


@ledger.command()
@json_option
@click.pass_context
def audit(ctx: click.Context, as_json: bool) -> None:
    """Check every balance and every running total; ends with 1 if one is wrong.

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
        columns = {"account": "hub_username", "balance": "balance", "sum of entries": "entries_sum"}
        print_items(balances, columns)
    else:
        click.echo("Every balance is the sum of its entries.")
    if totals:
        print_items(totals, {"total": "total", "stored": "kept", "recomputed": "counted"})
    else:
        click.echo("Every running total is the sum of its requests.")
