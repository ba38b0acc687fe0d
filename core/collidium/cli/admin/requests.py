"""``collidium admin requests``: everybody's simulation requests."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, note, print_json, print_table
from collidium.cli.requests import show_list, state_option


@click.command()
@state_option
@click.option("--user", metavar="NAME", help="Only requests of this account.")
@click.option("--channel", help="Only requests of this channel.")
@limit_option("requests")
@json_option
def requests(state: str | None, user: str | None, channel: str | None, limit: int, as_json: bool) -> None:
    """List simulation requests of everybody, newest first.

    \b
    collidium admin requests --state failed
    """
    with client() as server:
        page = server.admin_requests(state=state, user=user, channel=channel, limit=limit)
    if as_json:
        print_json(page.items)
    else:
        show_list(page.items, of_everybody=True)
        if page.next_cursor is not None:
            note(f"There are more than {limit}.")


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
