"""What commands of challenges share: dates, the fields of a challenge, and how it is shown."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidium.cli.options import complete_tasks
from collidium.cli.output import print_text, show_record
from collidium.cli.tasks import data_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collidium.client import Challenge, Page


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
        click.option(
            "--organisation", help="Admitted, too: one of the hub, GROUP.sso, or @DOMAIN; '': none."
        ),
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


def all_pages(ask: Callable[[str | None], Page[Any]]) -> Iterator[Any]:
    """The items of all pages."""
    cursor = None
    while True:
        page = ask(cursor)
        yield from page.items
        if (cursor := page.next_cursor) is None:
            return


def given_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
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


def show_challenge(found: Challenge, as_json: bool) -> None:
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
        "practice after closing": found.practice,
        "new bests earn credits": found.rewarded,
        "who may submit": ", ".join(
            filter(None, [found.access, found.organisation and f"organisation {found.organisation}"])
        ),
        "people in a team": found.team_size if found.team_size > 1 else "no teams",
    }
    if found.team_size > 1:
        rows["teams are fixed"] = found.teams_frozen_at or found.closes_at or "when it is closed"
    show_record(found, rows, as_json=as_json)
    if not as_json:
        for text in (text for pair in data_lines(found.card) for text in pair) if found.card else ():
            print_text(text)
        for number, one in enumerate(found.announcements, start=1):
            edited = f", edited {one.edited_at:%Y-%m-%d %H:%M}" if one.edited_at else ""
            print_text(f"{number}. {one.at:%Y-%m-%d %H:%M}{edited}: {one.text}")
        for line in found.rules.splitlines():
            print_text(line)
