"""``collidium admin``: reports and actions of operators. They need ADMIN_TOKEN."""

from __future__ import annotations

import click

from collidium.cli.admin.actions import ban, freeze, grant, refund, unban, unfreeze
from collidium.cli.context import client
from collidium.cli.options import json_option, limit_option, state_option
from collidium.cli.output import ColumnSpec, json_wanted, note, print_items, show_items, show_record
from collidium.cli.printing import show_evaluation
from collidium.presentation import evaluations as models
from collidium.presentation import requests as orders


@click.group()
def admin() -> None:
    """Operate a server from anywhere; needs ADMIN_TOKEN.

    On a terminal, destructive commands ask for confirmation; --yes skips that.
    """


for command in (freeze, unfreeze, grant, ban, unban, refund):
    admin.add_command(command)


month_option = click.option("--month", metavar="YYYY-MM", help="Month in UTC; default: the current one.")


@admin.command()
@limit_option("accounts", default=50)
@json_option
def usage(limit: int) -> None:
    """Show the node-hours of this month, and the accounts that used the most.

    \b
    collidium admin usage
    """
    with client() as server:
        found = server.admin_usage(limit=limit)
    month = {"month": found.month, "node-hours": found.total_node_hours, "requests": found.total_requests}
    show_record(found, month)
    if not json_wanted():
        columns = {"account": "hub_username", "node-hours": "node_hours", "requests": "requests"}
        print_items(found.users, columns, title="Accounts")


@admin.command()
@month_option
@json_option
def channels(month: str | None) -> None:
    """Show the requests and node-hours of each channel in a month.

    \b
    collidium admin channels
    collidium admin channels --month 2026-10
    """
    with client() as server:
        found = server.admin_channels(month=month).items
    columns = {"channel": "channel", "requests": "requests", "node-hours": "node_hours"}
    show_items(found, columns)


@admin.command()
@click.option(
    "--days", type=click.IntRange(1, 3660), default=30, show_default=True, help="Days, including today."
)
@json_option
def daily(days: int) -> None:
    """Show the requests and node-hours of each of the last days.

    \b
    collidium admin daily --days 7
    """
    with client() as server:
        found = server.admin_daily(days=days).items
    columns = {"day": "date", "requests": "requests", "node-hours": "node_hours"}
    show_items(found, columns)


@admin.command()
@month_option
@json_option
def failures(month: str | None) -> None:
    """Show the failure rate of the requests that ended in a month.

    \b
    collidium admin failures
    """
    with client() as server:
        found = server.admin_failures(month=month)
    rate = f"{found.failure_rate:.1f} %"
    rows = {"month": found.month, "failed": found.failed, "ended": found.finished, "failure rate": rate}
    show_record(found, rows)


@admin.command()
@state_option("requests", orders.STATES)
@click.option("--user", metavar="NAME", help="Only requests of this account.")
@click.option("--channel", help="Only requests of this channel.")
@limit_option("requests")
@json_option
def requests(state: str | None, user: str | None, channel: str | None, limit: int) -> None:
    """List the simulation requests of all accounts, newest first.

    \b
    collidium admin requests --state failed
    """
    with client() as server:
        page = server.admin_requests(state=state, user=user, channel=channel, limit=limit)
    show_items(page.items, orders.in_commands(accounts=True))
    _note_more(page.next_cursor, limit)


@admin.command()
@click.argument("evaluation_id", metavar="[EVALUATION]", required=False)
@click.option("--rerun", is_flag=True, help="Run EVALUATION again, which failed or was cancelled.")
@click.option("--cancel", is_flag=True, help="Cancel EVALUATION.")
@state_option("evaluations", models.STATES)
@click.option("--user", metavar="NAME", help="Only evaluations of this account.")
@limit_option("evaluations")
@json_option
def evaluations(
    evaluation_id: str | None, rerun: bool, cancel: bool, state: str | None, user: str | None, limit: int
) -> None:
    """List the submitted models of all accounts, newest first; rerun or cancel EVALUATION.

    \b
    collidium admin evaluations --state failed
    collidium admin evaluations 0123456789abcdef0123456789abcdef --rerun
    """
    if (evaluation_id is None) == (rerun or cancel) or (rerun and cancel):
        raise click.UsageError("give EVALUATION with --rerun or --cancel, or neither")
    with client() as server:
        if evaluation_id is not None:
            act = server.admin_rerun_evaluation if rerun else server.admin_cancel_evaluation
            show_evaluation(server, act(evaluation_id), wait=False)
            return
        page = server.admin_evaluations(state=state, user=user, limit=limit)
    show_items(page.items, models.in_commands(accounts=True))
    _note_more(page.next_cursor, limit)


@admin.command()
@limit_option("actions")
@json_option
def audit(limit: int) -> None:
    """List the actions of operators, newest first.

    \b
    collidium admin audit --limit 50
    """
    with client() as server:
        page = server.admin_audit(limit=limit)
    columns: dict[str, ColumnSpec] = {
        "when": "at",
        "who": "actor",
        "action": "action",
        "target": "target",
        "details": lambda entry: [f"{name}: {value}" for name, value in entry.details.items() if value != ""],
    }
    show_items(page.items, columns)
    _note_more(page.next_cursor, limit)


def _note_more(next_cursor: str | None, limit: int) -> None:
    if next_cursor is not None and not json_wanted():
        note(f"There are more than {limit}.")
