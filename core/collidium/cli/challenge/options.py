"""Options that commands of challenges share, and how a challenge is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from collidium.cli.options import DATE, EXISTING_FILE, ask
from collidium.cli.output import json_wanted, note, print_text, show_record
from collidium.presentation.challenges import closing_text
from collidium.presentation.tasks import data_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collidium.client import Challenge, Client


preview_option = click.option("--preview", is_flag=True, help="Only show what would change.")
closes_option = click.option("--closes", "closes_at", type=DATE, help="When it closes; never: by command.")


def fields_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the fields of a challenge."""
    options = (
        click.option("--title", help="Title for people."),
        click.option("--opens", "opens_at", type=DATE, help="When it opens: 2027-06-01T08:00+02:00."),
        closes_option,
        click.option(
            "--public",
            "public_percent",
            type=click.IntRange(1, 99),
            help="Percentage of the events that count until it closes; then the others count.",
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
            help="Submissions of a participant that final results are chosen from; default: 2.",
        ),
        click.option(
            "--practice/--no-practice", default=None, help="Score submissions after closing, unranked."
        ),
        click.option(
            "--rewards/--no-rewards", "rewarded", default=None, help="Pay credits for new best scores."
        ),
        click.option("--access", type=click.Choice(["open", "members"]), help="Who may submit."),
        click.option(
            "--organisation", help="Also admit this hub organisation, GROUP.sso or @DOMAIN; '': none."
        ),
        click.option("--team-size", type=click.IntRange(0, 100), help="Maximum members of a team."),
        click.option("--teams-until", "teams_frozen_at", type=DATE, help="When teams can no longer change."),
        click.option("--rules", type=EXISTING_FILE, help="Markdown file with the rules, shown on its page."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def given_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose options were given; a date given as ``never`` is None."""
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


def announce_split(server: Client, name: str, percent: int | None, *, yes: bool, **new: Any) -> None:
    """Say which tasks and challenges a public part closes, and ask on a terminal; raises click.Abort."""
    if percent is None:
        return
    if text := closing_text(server.admin_preview_split(name, percent, **new)):
        note(text)
        ask("Close them to submissions?", yes=yes)


def show_challenge(found: Challenge) -> None:
    """Print a challenge, with its data, announcements and rules."""
    part = f"{found.public_percent}% public, {found.phase} part counts" if found.phase else "all count"
    rows: dict[str, object] = {
        "challenge": found.name,
        "title": found.title,
        "task": found.task,
        "state": found.shown_state,
        "opens": found.opens_at,
        "closes": found.closes_at or "when it is closed",
        "final results": found.results_at,
        **({"results wait for": found.results_wait_for} if found.results_wait_for else {}),
        "events": part,
        "submissions a day": found.submissions_per_day,
        "final submissions": found.final_submissions,
        **({"accepts submissions": f"no: {found.reason}"} if found.reason else {}),
        "practice after closing": found.practice,
        "new bests earn credits": found.rewarded,
        "who may submit": ", ".join(
            filter(None, [found.access, found.organisation and f"organisation {found.organisation}"])
        ),
        "people in a team": found.team_size if found.team_size > 1 else "no teams",
    }
    if found.team_size > 1:
        rows["teams are fixed"] = found.teams_frozen_at or found.closes_at or "when it is closed"
    show_record(found, rows)
    if not json_wanted():
        for text in _texts(found):
            print_text(text)


def _texts(found: Challenge) -> Iterator[str]:
    """Yield how to get the data, the announcements and the rules of a challenge."""
    if found.card:
        for about, command in data_lines(found.card):
            yield about
            yield command
    for number, one in enumerate(found.announcements, start=1):
        edited = f", edited {one.edited_at:%Y-%m-%d %H:%M}" if one.edited_at else ""
        yield f"{number}. {one.at:%Y-%m-%d %H:%M}{edited}: {one.text}"
    yield from found.rules.splitlines()
