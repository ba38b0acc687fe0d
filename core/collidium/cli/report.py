"""``collidium report``: the operators' reports, asked of the server with ADMIN_TOKEN."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, note, print_json, print_record, print_table
from collidium.cli.requests import show_list, state_option


@click.group()
def report() -> None:
    """See what is ordered of the server, and by whom; needs ADMIN_TOKEN."""


@report.command()
@limit_option("accounts", default=50)
@json_option
def usage(limit: int, as_json: bool) -> None:
    """Show this month's node-hours, and the accounts that used most of them.

    \b
    collidium report usage
    """
    with client() as server:
        found = server.admin_usage(limit=limit)
    if as_json:
        print_json(found)
        return
    print_record(
        {"month": found.month, "node-hours": found.total_node_hours, "requests": found.total_requests}
    )
    print_table(
        ("account", "node-hours", "requests"),
        ((user.hub_username, user.node_hours, user.requests) for user in found.users),
        title="Accounts",
    )


@report.command()
@click.option("--month", metavar="YYYY-MM", help="Month in UTC; default: this one.")
@json_option
def channels(month: str | None, as_json: bool) -> None:
    """Show what was ordered of each channel in a month.

    \b
    collidium report channels
    collidium report channels --month 2026-10
    """
    with client() as server:
        found = server.admin_channels(month=month).items
    if as_json:
        print_json(found)
    else:
        print_table(
            ("channel", "requests", "node-hours"), ((c.channel, c.requests, c.node_hours) for c in found)
        )


@report.command()
@click.option(
    "--days", type=click.IntRange(1, 3660), default=30, show_default=True, help="Days, today included."
)
@json_option
def daily(days: int, as_json: bool) -> None:
    """Show what was ordered on each of the last days.

    \b
    collidium report daily --days 7
    """
    with client() as server:
        found = server.admin_daily(days=days).items
    if as_json:
        print_json(found)
    else:
        print_table(("day", "requests", "node-hours"), ((d.date, d.requests, d.node_hours) for d in found))


@report.command()
@json_option
def failures(as_json: bool) -> None:
    """Show how many of the requests that ended this month failed.

    \b
    collidium report failures
    """
    with client() as server:
        found = server.admin_failures()
    if as_json:
        print_json(found)
    else:
        told = f"{found.failure_rate:.1f} %"
        print_record(
            {"month": found.month, "failed": found.failed, "ended": found.finished, "failure rate": told}
        )


@report.command()
@state_option
@click.option("--user", metavar="NAME", help="Only requests of this account.")
@click.option("--channel", help="Only requests of this channel.")
@limit_option("requests")
@json_option
def requests(state: str | None, user: str | None, channel: str | None, limit: int, as_json: bool) -> None:
    """List simulation requests of everybody, newest first.

    \b
    collidium report requests --state failed
    """
    with client() as server:
        page = server.admin_requests(state=state, user=user, channel=channel, limit=limit)
    if as_json:
        print_json(page.items)
    else:
        show_list(page.items, of_everybody=True)
        if page.next_cursor is not None:
            note(f"There are more than {limit}.")
