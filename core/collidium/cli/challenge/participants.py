"""Commands about who takes part in a challenge, and about their submissions."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.challenge.options import all_pages, name_argument, preview_option, uses_options
from collidium.cli.context import client
from collidium.cli.options import json_option, key_option, limit_option
from collidium.cli.output import ColumnSpec, cell, note, print_json, show_items, show_message
from collidium.cli.progress import progress_bar
from collidium.cli.tasks import score_cell

if TYPE_CHECKING:
    from collidium.client import Ranking, Rescoring


@click.command()
@name_argument
@click.option("--user", metavar="ACCOUNT", help="Only those of this account.")
@limit_option("submissions")
@json_option
def submissions(name: str, user: str | None, limit: int, as_json: bool) -> None:
    """List the submissions to NAME, newest first, also those without a rank; needs ADMIN_TOKEN.

    \b
    collidium challenge submissions jets-2027 --user anna
    """
    with client() as server:
        found = server.admin_challenge_submissions(name, user=user, limit=limit).items
        card = None if as_json else server.challenge(name).card
    primary = card.primary_metric if card else ""
    columns: dict[str, ColumnSpec] = {
        "submission": "submission_id",
        "account": "hub_username",
        "team": "team",
        "submitted": "submitted_at",
        primary: lambda sent: score_cell(sent, primary),
        "chosen": "chosen_at",
        "no rank because": "unranked",
        "credits": "credits_earned",
    }
    show_items(found, columns, as_json=as_json)


@click.command()
@name_argument
@limit_option("accounts", default=1000)
@json_option
def roster(name: str, limit: int, as_json: bool) -> None:
    """List who takes part in NAME, by name, also members without submissions; needs ADMIN_TOKEN.

    Left are the submissions of today, of the whole team for those in one.

    \b
    collidium challenge roster jets-2027
    """
    with client() as server:
        found = server.admin_roster(name, limit=limit).items
    columns: dict[str, ColumnSpec] = {
        "account": "hub_username",
        "team": lambda entry: f"{entry.team} (captain)" if entry.captain else entry.team,
        "submissions": "submissions",
        "left": "submissions_left",
        "joined": "joined_at",
        "last": "last_submitted_at",
        "member": "member",
        "baseline": "baseline",
    }
    show_items(found, columns, as_json=as_json)


@click.command()
@name_argument
@click.argument("submission_id", metavar="SUBMISSION")
@click.option("--reason", required=True, help="Everybody sees it.")
@click.option("--take-back", is_flag=True, help="Take what it earned, down to a balance of zero.")
@preview_option
@key_option
@json_option
def disqualify(
    name: str,
    submission_id: str,
    reason: str,
    take_back: bool,
    preview: bool,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Take SUBMISSION off the leaderboard of NAME; needs ADMIN_TOKEN.

    Ranks, bests and later rewards follow.

    \b
    collidium challenge disqualify jets-2027 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48 --reason "..." --preview
    """
    with client() as server:
        if preview:
            ranking = server.admin_preview_standing(name, submission_id)
        else:
            ranking = server.admin_disqualify(
                name, submission_id, reason, take_back=take_back, idempotency_key=idempotency_key
            )
    _show_ranking(ranking, as_json)


@click.command()
@name_argument
@click.argument("submission_id", metavar="SUBMISSION")
@preview_option
@key_option
@json_option
def reinstate(
    name: str, submission_id: str, preview: bool, idempotency_key: str | None, as_json: bool
) -> None:
    """Let a disqualified SUBMISSION to NAME count again; needs ADMIN_TOKEN.

    \b
    collidium challenge reinstate jets-2027 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48
    """
    with client() as server:
        if preview:
            ranking = server.admin_preview_standing(name, submission_id)
        else:
            ranking = server.admin_reinstate(name, submission_id, idempotency_key=idempotency_key)
    _show_ranking(ranking, as_json)


@click.command()
@name_argument
@click.option(
    "--public", "percent", type=click.IntRange(1, 99), help="Percentage of the events that count from now on."
)
@click.option("--apply/--preview", "apply", help="Apply the new scores; default: show what would change.")
@click.option("--watch", is_flag=True, help="Order nothing; wait for what was ordered last, and show it.")
@key_option
@json_option
def rescore(
    name: str, percent: int | None, apply: bool, watch: bool, idempotency_key: str | None, as_json: bool
) -> None:
    """Score all submissions to NAME again, with the server's scorer and truth; needs ADMIN_TOKEN.

    The server does it in the background, also when this command is interrupted. With --public, the other
    events are held back until NAME is closed.

    \b
    collidium challenge rescore jets-2027
    collidium challenge rescore jets-2027 --apply
    collidium challenge rescore jets-2027 --public 30 --apply
    """
    from collidium.client.quantities import split_texts
    from collidium.records import Ranking

    with client() as server, progress_bar("Scoring (submissions)") as progress:
        if not watch:
            server.admin_rescore(name, public_percent=percent, apply=apply, idempotency_key=idempotency_key)

        def show(seen: Rescoring) -> None:
            if progress and seen.submissions:
                progress(seen.done, seen.submissions)

        found = server.wait_for_rescoring(name, on_change=show)
    if as_json:
        print_json(found)
    elif not found.problem:
        for submission_id, reason in found.unscored.items():
            note(f"{submission_id} is not scored again: {reason}")
        for text in split_texts(found):
            note(text)
        _show_ranking(Ranking(found.challenge, found.applies, found.changes), as_json=False)
    if found.problem:
        note(f"Nothing has changed: {found.problem}")
        raise SystemExit(1)


@click.command()
@name_argument
@click.option("--add", metavar="ACCOUNTS", help="Accounts to add, separated by commas.")
@click.option(
    "--csv",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Add those in the column name of a CSV file, or in its first column.",
)
@click.option("--remove", metavar="ACCOUNT", help="Take one from the list; invitations end.")
@key_option
@json_option
def members(
    name: str,
    add: str | None,
    file: Path | None,
    remove: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """List who may submit to NAME with --access members, or change the list; needs ADMIN_TOKEN.

    \b
    collidium challenge members jets-2027 --csv students.csv
    collidium challenge members jets-2027 --add anna,bob
    collidium challenge members jets-2027
    """
    if sum(option is not None for option in (add, file, remove)) > 1:
        raise click.UsageError("give one of --add, --csv and --remove")
    with client() as server:
        if remove is not None:
            gone = server.admin_remove_member(name, remove, idempotency_key=idempotency_key)
            show_message(gone, f"{gone.hub_username} is no member any more.", as_json=as_json)
        elif add is not None or file is not None:
            named = _named(file) if file else [each.strip() for each in (add or "").split(",")]
            done = server.admin_add_members(name, named, idempotency_key=idempotency_key)
            show_message(done, f"{done.added} added: {done.members} members.", as_json=as_json)
        else:
            show_items(
                list(all_pages(lambda cursor: server.admin_members(name, limit=1000, cursor=cursor))),
                {"account": "hub_username", "added": "added_at"},
                as_json=as_json,
            )


@click.command()
@name_argument
@click.option("--remove", metavar="ACCOUNT", help="Take one out of its team.")
@click.option("--dissolve", metavar="TEAM", help="Take this team apart.")
@key_option
@json_option
def teams(
    name: str, remove: str | None, dissolve: str | None, idempotency_key: str | None, as_json: bool
) -> None:
    """List the teams of NAME, or take people out of them with what they sent; that needs ADMIN_TOKEN.

    \b
    collidium challenge teams jets-2027
    collidium challenge teams jets-2027 --remove bob
    collidium challenge teams jets-2027 --dissolve "Team Ωmega"
    """
    from collidium.cli.team import show_teams

    if remove is not None and dissolve is not None:
        raise click.UsageError("give one of --remove and --dissolve")
    with client() as server:
        if remove is not None:
            was = server.admin_remove_member_of_team(name, remove, idempotency_key=idempotency_key)
            show_message(was, f"{remove} is not in {was.name} any more.", as_json=as_json)
        elif dissolve is not None:
            was = server.admin_dissolve_team(name, dissolve, idempotency_key=idempotency_key)
            alone = f"; alone now: {', '.join(was.members)}" if was.members else ""
            show_message(was, f"{was.name} is taken apart{alone}.", as_json=as_json)
        else:
            show_teams(server, name, as_json)


@click.command()
@name_argument
@uses_options
@json_option
def invite(name: str, uses: int, expires_at: datetime | None, as_json: bool) -> None:
    """Make an invitation to the members of NAME; needs ADMIN_TOKEN.

    \b
    collidium challenge invite jets-2027 --uses 30 --until 2027-06-10T12:00+02:00
    """
    from collidium.cli.team import show_invitation

    with client() as server:
        show_invitation(server, server.admin_invite(name, uses=uses, expires_at=expires_at), as_json)


def _named(file: Path) -> list[str]:
    """The accounts in a CSV file."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8: save it as CSV UTF-8") from None
    try:
        rows = [row for row in csv.reader(text.splitlines(), delimiter=_delimiter(text)) if any(row)]
    except csv.Error as error:
        raise click.UsageError(f"{file} is no CSV file: {error}") from None
    heading = [cell.strip().casefold() for cell in rows[0]] if rows else []
    column = heading.index("name") if "name" in heading else 0
    return [row[column].strip() if column < len(row) else "" for row in rows[1 if "name" in heading else 0 :]]


def _delimiter(text: str) -> str:
    return max(",;\t", key=text.partition("\n")[0].count)


def _show_ranking(ranking: Ranking, as_json: bool) -> None:
    columns: dict[str, ColumnSpec] = {
        "rank": lambda change: f"{cell(change.rank_before)} → {cell(change.rank)}",
        "account": "hub_username",
        "submission": "submission_id",
        "earns": "earns",
    }
    if as_json:
        print_json(ranking)
        return
    if ranking.changes:
        show_items(ranking.changes, columns, as_json=False)
    else:
        click.echo("No rank has changed." if ranking.applied else "No rank would change.")
    note(f"{ranking.challenge} is ranked so now." if ranking.applied else "This was a preview.")
