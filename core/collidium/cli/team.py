"""``collidium team``: compete in a challenge together."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from collidium.cli.context import all_pages, client
from collidium.cli.options import challenge_argument, json_option, limit_option, uses_options
from collidium.cli.output import json_wanted, show_items, show_record
from collidium.cli.printing import show_invitation
from collidium.presentation import submissions as sent
from collidium.presentation.challenges import TEAMS

if TYPE_CHECKING:
    from collidium.client import Participation


@click.group()
def team() -> None:
    """Compete in a challenge as a team: its best submission is ranked, and members share the daily quota.

    \b
    collidium team new jets-2027 "Team Ωμέγα"
    collidium team invite jets-2027 --uses 3
    """


@team.command()
@challenge_argument
@click.argument("team_name", metavar="TEAM")
@json_option
def new(name: str, team_name: str) -> None:
    """Create TEAM, a name in any script, in challenge NAME; you become its captain.

    \b
    collidium team new jets-2027 "Team Ωμέγα"
    """
    with client() as server:
        _show(server.new_team(name, team_name))


@team.command()
@challenge_argument
@json_option
def show(name: str) -> None:
    """Show your team in challenge NAME, and whether you may submit.

    \b
    collidium team show jets-2027
    """
    with client() as server:
        _show(server.team(name))


@team.command()
@challenge_argument
@limit_option("submissions")
@json_option
def submissions(name: str, limit: int) -> None:
    """List the submissions of your team in challenge NAME, newest first.

    \b
    collidium team submissions jets-2027
    """
    with client() as server:
        found = server.team_submissions(name, limit=limit).items
        cards = {} if json_wanted() else {card.name: card for card in server.tasks()}
    show_items(found, sent.of_team(cards))


@team.command("list")
@challenge_argument
@json_option
def list_(name: str) -> None:
    """List the teams of challenge NAME and their members, newest first.

    \b
    collidium team list jets-2027
    """
    with client() as server:
        found = list(all_pages(server.teams, name))
    show_items(found, TEAMS)


@team.command()
@challenge_argument
@uses_options
@json_option
def invite(name: str, uses: int, expires_at: datetime | None) -> None:
    """Create an invitation to your team in challenge NAME, as its captain.

    \b
    collidium team invite jets-2027
    collidium team invite jets-2027 --uses 3 --until 2027-06-10T12:00+02:00
    """
    with client() as server:
        show_invitation(server, server.invite_to_team(name, uses=uses, expires_at=expires_at))


@team.command()
@challenge_argument
@click.argument("code")
@json_option
def join(name: str, code: str) -> None:
    """Use an invitation to challenge NAME: to a team, or to the challenge itself.

    \b
    collidium team join jets-2027 CODE
    """
    with client() as server:
        _show(server.join(name, code))


@team.command()
@challenge_argument
@json_option
def leave(name: str) -> None:
    """Leave your team in challenge NAME, unless it has submitted.

    \b
    collidium team leave jets-2027
    """
    with client() as server:
        _show(server.remove_from_team(name, server.me().hub_username))


@team.command()
@challenge_argument
@click.argument("account")
@json_option
def remove(name: str, account: str) -> None:
    """Remove ACCOUNT from your team in challenge NAME, as its captain, unless it has submitted.

    \b
    collidium team remove jets-2027 bob
    """
    with client() as server:
        _show(server.remove_from_team(name, account))


def _show(found: Participation) -> None:
    own = found.team
    rows = {"challenge": found.challenge, "may submit": found.admitted, "team": own and own.name}
    if own:
        rows |= {"captain": own.captain, "members": own.members}
    show_record(found, rows)
