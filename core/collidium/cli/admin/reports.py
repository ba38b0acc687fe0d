"""``collidium admin usage``, ``channels``, ``daily`` and ``failures``: what was ordered, and how it ended."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, print_json, print_record, print_table

month_option = click.option("--month", metavar="YYYY-MM", help="Month in UTC; default: this one.")


@click.command()
@limit_option("accounts", default=50)
@json_option
def usage(limit: int, as_json: bool) -> None:
    """Show this month's node-hours, and the accounts that used most of them.

    \b
    collidium admin usage
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


@click.command()
@month_option
@json_option
def channels(month: str | None, as_json: bool) -> None:
    """Show what was ordered of each channel in a month.

    \b
    collidium admin channels
    collidium admin channels --month 2026-10
    """
    with client() as server:
        found = server.admin_channels(month=month).items
    if as_json:
        print_json(found)
    else:
        print_table(
            ("channel", "requests", "node-hours"), ((c.channel, c.requests, c.node_hours) for c in found)
        )


@click.command()
@click.option(
    "--days", type=click.IntRange(1, 3660), default=30, show_default=True, help="Days, today included."
)
@json_option
def daily(days: int, as_json: bool) -> None:
    """Show what was ordered on each of the last days.

    \b
    collidium admin daily --days 7
    """
    with client() as server:
        found = server.admin_daily(days=days).items
    if as_json:
        print_json(found)
    else:
        print_table(("day", "requests", "node-hours"), ((d.date, d.requests, d.node_hours) for d in found))


@click.command()
@month_option
@json_option
def failures(month: str | None, as_json: bool) -> None:
    """Show how many of the requests that ended in a month failed.

    \b
    collidium admin failures
    """
    with client() as server:
        found = server.admin_failures(month=month)
    if as_json:
        print_json(found)
    else:
        told = f"{found.failure_rate:.1f} %"
        print_record(
            {"month": found.month, "failed": found.failed, "ended": found.finished, "failure rate": told}
        )
