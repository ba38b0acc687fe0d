"""``collidium team``: compete in a challenge together."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from collidium.cli.challenge.options import all_pages, name_argument, uses_options
from collidium.cli.context import client
from collidium.cli.options import json_option, limit_option
from collidium.cli.output import ColumnSpec, note, print_json, show_items, show_record
from collidium.cli.submissions import chosen_cell
from collidium.cli.tasks import score_cell

if TYPE_CHECKING:
    from collidium.client import Client, Invitation, Participation


@click.group()
def team() -> None:
    """Compete in a challenge as a team: its best submission ranks, and all share the day's submissions.

    \b
    collidium team new jets-2027 "Team Ωmega"
    collidium team invite jets-2027 --uses 3
    """


@team.command()
@name_argument
@click.argument("team_name", metavar="TEAM")
@json_option
def new(name: str, team_name: str, as_json: bool) -> None:
    """Make TEAM, a name in any script, in challenge NAME, and be its captain.

    \b
    collidium team new jets-2027 "Team Ωmega"
    """
    with client() as server:
        _show(server.new_team(name, team_name), as_json)


@team.command()
@name_argument
@json_option
def show(name: str, as_json: bool) -> None:
    """Show your team in challenge NAME, and whether you may submit.

    \b
    collidium team show jets-2027
    """
    with client() as server:
        _show(server.team(name), as_json)


@team.command()
@name_argument
@limit_option("submissions")
@json_option
def submissions(name: str, limit: int, as_json: bool) -> None:
    """List what your team in challenge NAME has submitted, and who sent it, newest first.

    \b
    collidium team submissions jets-2027
    """
    with client() as server:
        found = server.team_submissions(name, limit=limit).items
    columns: dict[str, ColumnSpec] = {
        "submitted": "submitted_at",
        "account": "hub_username",
        "scores": lambda sent: [f"{metric} {score_cell(sent, metric)}" for metric in sent.scores],
        "chosen": chosen_cell,
        "no rank because": "unranked",
        "submission": "submission_id",
    }
    show_items(found, columns, as_json=as_json)


@team.command("list")
@name_argument
@json_option
def list_(name: str, as_json: bool) -> None:
    """List the teams of challenge NAME and who is in them, the latest first.

    \b
    collidium team list jets-2027
    """
    with client() as server:
        show_teams(server, name, as_json)


@team.command()
@name_argument
@uses_options
@json_option
def invite(name: str, uses: int, expires_at: datetime | None, as_json: bool) -> None:
    """Make an invitation to your team in challenge NAME, whose captain you are.

    \b
    collidium team invite jets-2027
    collidium team invite jets-2027 --uses 3 --until 2027-06-10T12:00+02:00
    """
    with client() as server:
        show_invitation(server, server.invite_to_team(name, uses=uses, expires_at=expires_at), as_json)


@team.command()
@name_argument
@click.argument("code")
@json_option
def join(name: str, code: str, as_json: bool) -> None:
    """Use an invitation to challenge NAME: to a team, or to the challenge itself.

    \b
    collidium team join jets-2027 CODE
    """
    with client() as server:
        _show(server.join(name, code), as_json)


@team.command()
@name_argument
@json_option
def leave(name: str, as_json: bool) -> None:
    """Leave your team in challenge NAME, unless it has submitted.

    \b
    collidium team leave jets-2027
    """
    with client() as server:
        _show(server.remove_from_team(name, server.me().hub_username), as_json)


@team.command()
@name_argument
@click.argument("account")
@json_option
def remove(name: str, account: str, as_json: bool) -> None:
    """Remove ACCOUNT from your team in challenge NAME, whose captain you are, unless it has submitted.

    \b
    collidium team remove jets-2027 bob
    """
    with client() as server:
        _show(server.remove_from_team(name, account), as_json)


def show_teams(server: Client, name: str, as_json: bool) -> None:
    """All teams of a challenge and who is in them."""
    found = list(all_pages(lambda cursor: server.teams(name, limit=1000, cursor=cursor)))
    show_items(found, {"team": "name", "captain": "captain", "members": "members"}, as_json=as_json)


def _show(found: Participation, as_json: bool) -> None:
    own = found.team
    rows = {"challenge": found.challenge, "may submit": found.admitted, "team": own and own.name}
    if own:
        rows |= {"captain": own.captain, "members": own.members}
    show_record(found, rows, as_json=as_json)


def show_invitation(server: Client, made: Invitation, as_json: bool) -> None:
    """An invitation, its code alone on the last line. It is not shown again."""
    if as_json:
        print_json(made)
        return
    until = f"{made.expires_at:%Y-%m-%d %H:%M} UTC"
    note(f"Admits {made.uses}, until {until}: collidium team join {made.challenge} {made.code}")
    note(f"Or in a browser: {server.backend}/leaderboard/{made.challenge}/team?invitation={made.code}")
    click.echo(made.code)
