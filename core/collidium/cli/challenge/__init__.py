"""``collidium challenge``: show challenges, and run them as an organiser."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import click

from collidium.cli.challenge import participants, running
from collidium.cli.challenge.options import show_challenge
from collidium.cli.context import client
from collidium.cli.options import challenge_argument, json_option
from collidium.cli.output import json_wanted, note, print_text, show_items, show_value
from collidium.errors import Unauthenticated
from collidium.presentation.challenges import IN_COMMANDS, quota_text


class ChallengeGroup(click.Group):
    """The group, whose help lists users' commands first."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Commands for users": [], "Commands for organisers": []}
        for name in self.list_commands(ctx):
            title = "users" if name in FOR_USERS else "organisers"
            summary = self.commands[name].get_short_help_str(limit=80)
            sections[f"Commands for {title}"].append((name, summary))
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl(lines)


#: Commands that need no operator's token.
FOR_USERS: Final = ("list", "show", "quota", "export")


@click.group(cls=ChallengeGroup)
def challenge() -> None:
    """Show and run challenges: tasks with dates, and with public and final scores.

    \b
    collidium challenge show jets-2027
    collidium challenge new jets-2027 --task jets --public 30 --closes 2027-06-30T12:00+02:00
    """


@challenge.command("list")
@json_option
def list_() -> None:
    """List the challenges, those that close next first.

    \b
    collidium challenge list
    """
    with client() as server:
        found = server.challenges().items
    show_items(found, IN_COMMANDS)


@challenge.command()
@challenge_argument
@json_option
def show(name: str) -> None:
    """Show a challenge: its dates, state, rules and announcements.

    \b
    collidium challenge show jets-2027
    """
    with client() as server:
        found = server.challenge(name)
        show_challenge(found)
        if not json_wanted():
            with suppress(Unauthenticated):  # the quota needs a login, the challenge does not
                print_text(quota_text(server.quota(name)))


@challenge.command()
@challenge_argument
@json_option
def quota(name: str) -> None:
    """Show how many submissions to NAME you have left today, and when it closes.

    \b
    collidium challenge quota jets-2027
    """
    with client() as server:
        left = server.quota(name)
    show_value(left, lambda left: note(quota_text(left)))


@challenge.command()
@challenge_argument
@click.option("--all", "every", is_flag=True, help="Include disqualified and withdrawn submissions.")
@json_option
def export(name: str, every: bool) -> None:
    """Write the results of NAME to standard output, as CSV or JSON.

    \b
    collidium challenge export jets-2027 > results.csv
    """
    with client() as server:
        found = server.results(name, as_csv=not json_wanted(), every=every)
    click.echo(found, nl=json_wanted())


for command in (
    *(running.new, running.create, running.edit, running.close, running.open_, running.reopen),
    *(participants.submissions, participants.roster, participants.disqualify, participants.reinstate),
    *(participants.rescore, participants.waiting),
    *(participants.members, participants.teams, participants.invite),
):
    challenge.add_command(command)
