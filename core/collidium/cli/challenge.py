"""``collidium challenge``: a task with dates, from its first day to its results."""

from __future__ import annotations

import csv
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidium.cli.context import client
from collidium.cli.leaderboard import show_quota
from collidium.cli.options import complete_tasks, json_option, key_option, limit_option
from collidium.cli.output import ColumnSpec, cell, note, print_json, show_items, show_message, show_record
from collidium.cli.tasks import data_lines
from collidium.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collidium.client import Challenge, Page, Ranking
    from collidium.platform import Platform
    from collidium.seeding.steps import Report, Seeding


class Moment(click.ParamType[datetime | None]):
    """A date and time with its zone."""

    name = "DATE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | None:
        """A moment; ``never``: none."""
        if value == "never" or isinstance(value, datetime):
            return None if value == "never" else value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not written like 2027-06-30T12:00+02:00", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no time zone: write {value}Z for UTC, or {value}+02:00", param, ctx)
        return moment


preview_option = click.option("--preview", is_flag=True, help="Only show what would change.")
name_argument = click.argument("name", shell_complete=complete_tasks)
closes_option = click.option(
    "--closes", "closes_at", type=Moment(), help="When it closes; never: by command."
)


def uses_options(command: Callable[..., None]) -> Callable[..., None]:
    """How often, and until when, an invitation admits."""
    until = click.option("--until", "expires_at", type=Moment(), help="When it ends; 14 days unless set.")
    uses = click.option("--uses", type=click.IntRange(1, 10_000), default=1, help="How many it admits.")
    return uses(until(command))


def fields_options(command: Callable[..., None]) -> Callable[..., None]:
    """What operators set of a challenge."""
    options = (
        click.option("--title", help="A name for people."),
        click.option("--opens", "opens_at", type=Moment(), help="When it opens: 2027-06-01T08:00+02:00."),
        closes_option,
        click.option(
            "--public",
            "public_percent",
            type=click.IntRange(1, 99),
            help="Per cent of the events that count until it closes; the rest counts then.",
        ),
        click.option(
            "--per-day",
            "submissions_per_day",
            type=click.IntRange(1, 10_000),
            help="Submissions a day.",
        ),
        click.option(
            "--final",
            "final_submissions",
            type=click.IntRange(1, 100),
            help="How many of a participant final results are chosen from; 2 unless set.",
        ),
        click.option("--practice/--no-practice", default=None, help="Score after closing, unranked."),
        click.option("--rewards/--no-rewards", "rewarded", default=None, help="Pay credits for new bests."),
        click.option("--access", type=click.Choice(["open", "members"]), help="Who may submit."),
        click.option("--organisation", help="An organisation of the hub that is admitted, too; '': none."),
        click.option("--team-size", type=click.IntRange(0, 100), help="How many people a team may have."),
        click.option(
            "--teams-until", "teams_frozen_at", type=Moment(), help="From when on teams stay as they are."
        ),
        click.option(
            "--rules",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A Markdown file; shown on its page.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def challenge() -> None:
    """Run challenges: tasks with dates, a public and a final part.

    \b
    collidium challenge new jets-2027 --task jets --public 30 --closes 2027-06-30T12:00+02:00
    """


@challenge.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the challenges, the next to close first.

    \b
    collidium challenge list
    """
    with client() as server:
        found = server.challenges().items
    columns = {
        "challenge": "name",
        "task": "task",
        "state": "state",
        "opens": "opens_at",
        "closes": "closes_at",
        "results": "results_at",
        "part": "phase",
    }
    show_items(found, columns, as_json=as_json)


@challenge.command()
@name_argument
@json_option
def show(name: str, as_json: bool) -> None:
    """Show a challenge: its dates, state, rules and announcements.

    \b
    collidium challenge show jets-2027
    """
    with client() as server:
        found = server.challenge(name)
        _show(found, as_json)
        if not as_json:
            with suppress(Unauthenticated):  # for those who are logged in
                show_quota(server.quota(name))


@challenge.command()
@name_argument
@json_option
def quota(name: str, as_json: bool) -> None:
    """Show how many submissions to NAME you have left today, and until when they are taken.

    \b
    collidium challenge quota jets-2027
    """
    with client() as server:
        left = server.quota(name)
    print_json(left) if as_json else show_quota(left)


@challenge.command()
@name_argument
@click.option("--task", required=True, shell_complete=complete_tasks, help="The task.")
@click.option("--truth", "truth_version", help="Of `truth list`; default: that of the task's own challenge.")
@fields_options
@key_option
@json_option
def new(
    name: str,
    task: str,
    truth_version: str | None,
    idempotency_key: str | None,
    as_json: bool,
    **fields: Any,
) -> None:
    """Make challenge NAME, words of a-z and 0-9 joined by hyphens; needs ADMIN_TOKEN.

    \b
    collidium challenge new jets-2027 --task jets
    collidium challenge new jets-2027 --task jets --title "Jets for beginners" --public 30 \\
        --opens 2027-06-01T08:00+02:00 --closes 2027-06-30T12:00+02:00 --rules rules.md
    """
    with client() as server:
        made = server.admin_new_challenge(
            name, task, truth_version=truth_version, idempotency_key=idempotency_key, **_given(fields)
        )
    _show(made, as_json)


@challenge.command()
@name_argument
@click.option("--task", required=True, shell_complete=complete_tasks, help="The task.")
@click.option(
    "--events", "train", type=click.IntRange(0, 90_000), required=True, help="To learn from, with truth."
)
@click.option(
    "--eval",
    "evaluated",
    type=click.IntRange(2, 1_000_000),
    required=True,
    help="That are scored; of each channel, if the task mixes them.",
)
@click.option("--channel", default="", help="Channel that is simulated.  [default: ttbar]")
@click.option("--pileup", type=click.IntRange(0, 200), default=0, show_default=True, help="Collisions added.")
@click.option(
    "--dataset",
    metavar="DIR|REPO[@REV]",
    default="",
    help="Take the events from here, the scored ones last, and simulate none.",
)
@click.option("--config", default="", metavar="NAME", help="Config of --dataset, where it has several.")
@fields_options
@click.option("--dry-run", is_flag=True, help="Show what is to be made, and what it takes.")
@json_option
def create(
    name: str,
    task: str,
    train: int,
    evaluated: int,
    channel: str,
    pileup: int,
    dataset: str,
    config: str,
    dry_run: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Make challenge NAME with events of its own: simulated, published blind, scored, opened.

    Runs on the server's machine, next to `collidium serve`, as `collidium seed` does. Everybody sees the
    challenge when its baselines are scored. The same command resumes after an interruption; dates and rules
    are those of the first run then.

    \b
    collidium challenge create jets-2027 --task jets --events 2000 --eval 500 --public 30 --dry-run
    collidium challenge create jets-2027 --task jets --events 2000 --eval 500 --public 30 \\
        --opens 2027-06-01T08:00+02:00 --closes 2027-06-30T12:00+02:00 --rules rules.md
    collidium challenge create tracks-2027 --task tracking --dataset ./private --events 100 --eval 50
    """
    from collidium.cli.seed import run_steps, show_plan

    given = _given(fields)
    percent = given.pop("public_percent", None)

    def prepare(platform: Platform, local: bool, report: Report) -> Seeding:
        from collidium.seeding import drafts, plan
        from collidium.seeding.state import State
        from collidium.seeding.steps import Seeding

        found, settings, source = platform.tasks.find(task), platform.settings, None
        events = plan.ChallengeEvents(task, train, evaluated, channel, pileup, dataset, config, percent)
        if dataset:
            events, source = drafts.find_source(events, settings.hub, settings.data_dir / "cache" / "hub")
        size = plan.of_challenge(name, found.card, events, source)
        draft = drafts.Draft(name, given, events)
        return Seeding(platform, size, [found], State.open(settings.data_dir), local, report, draft)

    record = run_steps(prepare, dry_run=dry_run)
    if as_json:
        print_json(record | {"challenge": name})
    elif dry_run:
        show_plan(record)
    else:
        note(f"{record['steps']} steps done: collidium challenge show {name}")


@challenge.command()
@name_argument
@fields_options
@click.option("--announce", "announcement", help="Announce this, in Markdown, on its page.")
@key_option
@json_option
def edit(name: str, idempotency_key: str | None, as_json: bool, **fields: Any) -> None:
    """Change what is given of challenge NAME; needs ADMIN_TOKEN.

    \b
    collidium challenge edit jets-2027 --closes 2027-07-01T12:00+02:00 --announce "One day more."
    """
    with client() as server:
        edited = server.admin_edit_challenge(name, idempotency_key=idempotency_key, **_given(fields))
    _show(edited, as_json)


@challenge.command()
@name_argument
@key_option
@json_option
def close(name: str, idempotency_key: str | None, as_json: bool) -> None:
    """Take no more submissions to NAME, and show final results; needs ADMIN_TOKEN.

    Files that are being received count if they are complete within ten minutes; results wait for them.

    \b
    collidium challenge close jets-2027
    """
    with client() as server:
        closed = server.admin_close_challenge(name, idempotency_key=idempotency_key)
    _show(closed, as_json)
    if closed.results_wait_for:
        note(f"Final results wait for {', '.join(closed.results_wait_for)}, which has the same events.")
    elif closed.results_at is None:
        note(f"Final results come when what is being received is scored: collidium leaderboard {name}")


@challenge.command("open")
@name_argument
@closes_option
@key_option
@json_option
def open_(name: str, closes_at: datetime | None, idempotency_key: str | None, as_json: bool) -> None:
    """Open NAME now, or open it again, unless final results were shown; needs ADMIN_TOKEN.

    \b
    collidium challenge open jets-2027
    collidium challenge reopen jets-2027 --closes 2027-07-02T12:00+02:00
    """
    with client() as server:
        opened = server.admin_open_challenge(name, closes_at=closes_at, idempotency_key=idempotency_key)
    _show(opened, as_json)


challenge.add_command(open_, "reopen")


@challenge.command()
@name_argument
@click.option("--all", "every", is_flag=True, help="Every submission, not each participant's best.")
@json_option
def export(name: str, every: bool, as_json: bool) -> None:
    """Write the results of NAME to standard output, as CSV or JSON.

    \b
    collidium challenge export jets-2027 > results.csv
    """
    with client() as server:
        found = server.results(name, as_csv=not as_json, every=every)
    click.echo(found, nl=as_json)


@challenge.command()
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
    columns: dict[str, ColumnSpec] = {
        "submission": "submission_id",
        "account": "hub_username",
        "submitted": "submitted_at",
        "no rank because": "unranked",
        "credits": "credits_earned",
    }
    show_items(found, columns, as_json=as_json)


@challenge.command()
@name_argument
@limit_option("accounts", default=1000)
@json_option
def roster(name: str, limit: int, as_json: bool) -> None:
    """List who takes part in NAME: accounts by name, with their submissions; needs ADMIN_TOKEN.

    \b
    collidium challenge roster jets-2027
    """
    with client() as server:
        found = server.admin_roster(name, limit=limit).items
    columns: dict[str, ColumnSpec] = {
        "account": "hub_username",
        "submissions": "submissions",
        "joined": "joined_at",
        "last": "last_submitted_at",
        "baseline": "baseline",
    }
    show_items(found, columns, as_json=as_json)


@challenge.command()
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


@challenge.command()
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


@challenge.command()
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


@challenge.command()
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


def all_pages(ask: Callable[[str | None], Page[Any]]) -> Iterator[Any]:
    """The items of all pages."""
    cursor = None
    while True:
        page = ask(cursor)
        yield from page.items
        if (cursor := page.next_cursor) is None:
            return


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given; a date that is given as never is None."""
    context = click.get_current_context()
    given = {
        name: value
        for name, value in fields.items()
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
    }
    if given.get("organisation") == "":
        given["organisation"] = None
    if rules := given.get("rules"):
        given["rules"] = rules.read_text(encoding="utf-8")
    return given


def _show(found: Challenge, as_json: bool) -> None:
    part = f"{found.public_percent}% public, {found.phase} part counts" if found.phase else "all count"
    rows = {
        "challenge": found.name,
        "title": found.title,
        "task": found.task,
        "state": found.state,
        "opens": found.opens_at,
        "closes": found.closes_at or "when it is closed",
        "final results": found.results_at,
        **({"results wait for": found.results_wait_for} if found.results_wait_for else {}),
        "events": part,
        "submissions a day": found.submissions_per_day,
        "final submissions": found.final_submissions,
        "practice after closing": found.practice,
        "new bests earn credits": found.rewarded,
        "who may submit": ", ".join(
            filter(None, [found.access, found.organisation and f"organisation {found.organisation}"])
        ),
        "teams are fixed": found.teams_frozen_at or found.closes_at,
        "people in a team": found.team_size if found.team_size > 1 else "no teams",
    }
    show_record(found, rows, as_json=as_json)
    if not as_json:
        for text in (text for pair in data_lines(found.card) for text in pair) if found.card else ():
            note(text)
        for one in found.announcements:
            note(f"{one.at:%Y-%m-%d %H:%M} {one.text}")
        for line in found.rules.splitlines():
            note(line)


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
    show_items(ranking.changes, columns, as_json=False)
    note(f"{ranking.challenge} is ranked so now." if ranking.applied else "Nothing has changed.")
