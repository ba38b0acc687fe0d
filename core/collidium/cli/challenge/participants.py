"""Commands for the participants of a challenge and their submissions."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.challenge.options import announce_split, preview_option
from collidium.cli.context import all_pages, client
from collidium.cli.options import (
    EXISTING_FILE,
    challenge_argument,
    json_option,
    key_option,
    limit_option,
    uses_options,
    yes_option,
)
from collidium.cli.output import (
    ColumnSpec,
    cell,
    json_wanted,
    note,
    print_items,
    print_json,
    show_items,
    show_message,
    show_value,
)
from collidium.cli.printing import show_invitation
from collidium.cli.progress import progress_bar
from collidium.presentation import challenges
from collidium.presentation import submissions as sent
from collidium.records.challenge_settings import PUBLIC_PERCENT

if TYPE_CHECKING:
    from collidium.client import Ranking, Rescoring


@click.command()
@challenge_argument
@click.option("--user", metavar="ACCOUNT", help="Only submissions of this account.")
@limit_option("submissions")
@json_option
def submissions(name: str, user: str | None, limit: int) -> None:
    """List the submissions to NAME, newest first, including unranked ones; needs ADMIN_TOKEN.

    \b
    collidium challenge submissions jets-2027 --user anna
    """
    with client() as server:
        found = server.admin_challenge_submissions(name, user=user, limit=limit).items
        card = None if json_wanted() else server.challenge(name).card
    show_items(found, sent.of_challenge(card) if card else ())


@click.command()
@challenge_argument
@limit_option("accounts", default=1000)
@json_option
def roster(name: str, limit: int) -> None:
    """List the participants of NAME by name, including members without submissions; needs ADMIN_TOKEN.

    The column left counts the remaining submissions of today, for members of a team those of the team.

    \b
    collidium challenge roster jets-2027
    """
    with client() as server:
        found = server.admin_roster(name, limit=limit).items
    show_items(found, challenges.ROSTER)


@click.command()
@challenge_argument
@click.argument("submission_id", metavar="SUBMISSION")
@click.option("--reason", required=True, help="Reason; it is public.")
@click.option(
    "--take-back", is_flag=True, help="Deduct the credits that it earned, down to a balance of zero."
)
@preview_option
@key_option
@json_option
def disqualify(
    name: str, submission_id: str, reason: str, take_back: bool, preview: bool, idempotency_key: str | None
) -> None:
    """Remove SUBMISSION from the leaderboard of NAME; needs ADMIN_TOKEN.

    Ranks and best scores change, and later rewards with them.

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
    show_value(ranking, _print_ranking)


@click.command()
@challenge_argument
@click.argument("submission_id", metavar="SUBMISSION")
@preview_option
@key_option
@json_option
def reinstate(name: str, submission_id: str, preview: bool, idempotency_key: str | None) -> None:
    """Let a disqualified SUBMISSION to NAME count again; needs ADMIN_TOKEN.

    \b
    collidium challenge reinstate jets-2027 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48
    """
    with client() as server:
        if preview:
            ranking = server.admin_preview_standing(name, submission_id)
        else:
            ranking = server.admin_reinstate(name, submission_id, idempotency_key=idempotency_key)
    show_value(ranking, _print_ranking)


@click.command()
@challenge_argument
@click.option(
    "--public",
    "percent",
    type=click.IntRange(PUBLIC_PERCENT.minimum, PUBLIC_PERCENT.maximum),
    help="Percentage of the events that count until NAME is closed.",
)
@click.option("--apply/--preview", "apply", help="Apply the new scores; default: show what would change.")
@click.option("--watch", is_flag=True, help="Wait for the last rescoring and show it; start none.")
@yes_option
@key_option
@json_option
def rescore(
    name: str, percent: int | None, apply: bool, watch: bool, yes: bool, idempotency_key: str | None
) -> None:
    """Score all submissions to NAME again, with the server's scorer and truth; needs ADMIN_TOKEN.

    The server continues in the background if this command is interrupted. With --public, the other events
    count when NAME is closed.

    \b
    collidium challenge rescore jets-2027
    collidium challenge rescore jets-2027 --apply
    collidium challenge rescore jets-2027 --public 30 --apply
    """
    from collidium.records import Ranking

    with client() as server, progress_bar("Scoring (submissions)") as progress:
        if not watch:
            announce_split(server, name, percent, yes=yes or not apply)
            server.admin_rescore(name, public_percent=percent, apply=apply, idempotency_key=idempotency_key)

        waits = 0

        def show(seen: Rescoring) -> None:
            nonlocal waits
            if progress and seen.submissions:
                progress(seen.done, seen.submissions)
            if len(seen.waiting) > waits:
                reason = next(iter(seen.waiting.values()))
                note(f"waiting: {len(seen.waiting)} files: {reason} (collidium challenge waiting {name})")
            waits = len(seen.waiting)

        found = server.wait_for_rescoring(name, on_change=show)
    if json_wanted():
        print_json(found)
    elif not found.problem:
        for submission_id, reason in found.unscored.items():
            note(f"{submission_id} cannot be scored again: {reason}")
        for text in challenges.split_texts(found):
            note(text)
        _print_ranking(Ranking(found.challenge, found.applies, found.changes))
    if found.problem:
        note(f"Nothing has changed: {found.problem}")
        raise SystemExit(1)


@click.command()
@challenge_argument
@click.option("--leave-out", "left_out", metavar="SUBMISSION", help="Wait for it no longer; needs --reason.")
@click.option("--reason", help="Why it is left out; for the audit log, and with the submission.")
@click.option("--retry", is_flag=True, help="Try all of them again, now and for another day.")
@key_option
@json_option
def waiting(
    name: str, left_out: str | None, reason: str | None, retry: bool, idempotency_key: str | None
) -> None:
    """List the files that a rescoring or the end of NAME waits for, or leave one out; needs ADMIN_TOKEN.

    Files wait while workers are killed or the storage does not have them, and are tried again for a day. A
    submission that is left out keeps its scores and loses its rank with the new ones.

    \b
    collidium challenge waiting jets-2027
    collidium challenge waiting jets-2027 --retry
    collidium challenge waiting jets-2027 --leave-out 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48 --reason "..."
    """
    if (left_out is None) != (reason is None):
        raise click.UsageError("give --leave-out and --reason together")
    if retry and left_out is not None:
        raise click.UsageError("give either --retry or --leave-out")
    with client() as server:
        if left_out is not None and reason is not None:
            done = server.admin_leave_out(name, left_out, reason, idempotency_key=idempotency_key)
            show_message(done, f"{done.submission_id} of {done.hub_username} is left out.")
        else:
            if retry:
                found = server.admin_retry_waiting(name, idempotency_key=idempotency_key)
            else:
                found = server.admin_waiting_files(name)
            show_items(list(found), challenges.WAITING)


@click.command()
@challenge_argument
@click.option("--add", metavar="ACCOUNTS", help="Accounts to add, separated by commas.")
@click.option(
    "--csv",
    "file",
    type=EXISTING_FILE,
    help="Add the accounts in the column name of a CSV file, or in its first column.",
)
@click.option("--remove", metavar="ACCOUNT", help="Remove an account from the list; invitations end.")
@key_option
@json_option
def members(
    name: str, add: str | None, file: Path | None, remove: str | None, idempotency_key: str | None
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
            show_message(gone, f"{gone.hub_username} is no longer a member.")
        elif add is not None or file is not None:
            named = _named(file) if file else [each.strip() for each in (add or "").split(",")]
            done = server.admin_add_members(name, named, idempotency_key=idempotency_key)
            show_message(done, f"{done.added} added: {done.members} members.")
        else:
            found = list(all_pages(server.admin_members, name))
            show_items(found, {"account": "hub_username", "added": "added_at"})


@click.command()
@challenge_argument
@click.option("--remove", metavar="ACCOUNT", help="Remove an account from its team.")
@click.option("--dissolve", metavar="TEAM", help="Dissolve this team.")
@key_option
@json_option
def teams(name: str, remove: str | None, dissolve: str | None, idempotency_key: str | None) -> None:
    """List the teams of NAME. Removing an account or dissolving a team needs ADMIN_TOKEN.

    Removed accounts keep their submissions and compete alone.

    \b
    collidium challenge teams jets-2027
    collidium challenge teams jets-2027 --remove bob
    collidium challenge teams jets-2027 --dissolve "Team Ωμέγα"
    """
    if remove is not None and dissolve is not None:
        raise click.UsageError("give one of --remove and --dissolve")
    with client() as server:
        if remove is not None:
            was = server.admin_remove_member_of_team(name, remove, idempotency_key=idempotency_key)
            show_message(was, f"{remove} is no longer in {was.name}.")
        elif dissolve is not None:
            was = server.admin_dissolve_team(name, dissolve, idempotency_key=idempotency_key)
            alone = f"; competing alone now: {', '.join(was.members)}" if was.members else ""
            show_message(was, f"{was.name} is dissolved{alone}.")
        else:
            show_items(list(all_pages(server.teams, name)), challenges.TEAMS)


@click.command()
@challenge_argument
@uses_options
@json_option
def invite(name: str, uses: int, expires_at: datetime | None) -> None:
    """Create an invitation to the members of NAME; needs ADMIN_TOKEN.

    \b
    collidium challenge invite jets-2027 --uses 30 --until 2027-06-10T12:00+02:00
    """
    with client() as server:
        show_invitation(server, server.admin_invite(name, uses=uses, expires_at=expires_at))


def _named(file: Path) -> list[str]:
    """Read the accounts in a CSV file."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8: save it as CSV UTF-8") from None
    try:
        rows = [row for row in csv.reader(text.splitlines(), delimiter=_delimiter(text)) if any(row)]
    except csv.Error as error:
        raise click.UsageError(f"{file} is not a CSV file: {error}") from None
    heading = [cell.strip().casefold() for cell in rows[0]] if rows else []
    column = heading.index("name") if "name" in heading else 0
    return [row[column].strip() if column < len(row) else "" for row in rows[1 if "name" in heading else 0 :]]


def _delimiter(text: str) -> str:
    return max(",;\t", key=text.partition("\n")[0].count)


def _print_ranking(ranking: Ranking) -> None:
    columns: dict[str, ColumnSpec] = {
        "rank": lambda change: f"{cell(change.rank_before)} → {cell(change.rank)}",
        "account": "hub_username",
        "submission": "submission_id",
        "earns": "earns",
    }
    if ranking.changes:
        print_items(ranking.changes, columns)
    else:
        click.echo("No rank has changed." if ranking.applied else "No rank would change.")
    note(f"The ranking of {ranking.challenge} is updated." if ranking.applied else "This was a preview.")
