"""``collidium admin audit``: what operators did."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, note, print_json, print_table


@click.command()
@limit_option("deeds")
@json_option
def audit(limit: int, as_json: bool) -> None:
    """List what operators did, newest first.

    \b
    collidium admin audit --limit 50
    """
    with client() as server:
        page = server.admin_audit(limit=limit)
    if as_json:
        print_json(page.items)
        return
    print_table(
        ("when", "who", "did", "to", "details"),
        (
            (deed.at, deed.actor, deed.action, deed.target, [f"{k}: {v}" for k, v in deed.details.items()])
            for deed in page
        ),
    )
    if page.next_cursor is not None:
        note(f"There are more than {limit}.")
