"""Commands that make, change, open and close a challenge."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.challenge.options import (
    closes_option,
    fields_options,
    given_fields,
    name_argument,
    show_challenge,
)
from collidium.cli.context import client
from collidium.cli.options import complete_tasks, json_option, key_option
from collidium.cli.output import note, print_json

#: Of an announcement, the latest first.
NUMBER: Final = click.IntRange(min=1)

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.seeding.steps import Report, Seeding


@click.command()
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
            name, task, truth_version=truth_version, idempotency_key=idempotency_key, **given_fields(fields)
        )
    show_challenge(made, as_json)


@click.command()
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
@click.option("--dry-run", is_flag=True, help="Show what would be created, with its size and duration.")
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

    given = given_fields(fields)
    percent = given.pop("public_percent", None)

    def prepare(platform: Platform, local: bool, report: Report) -> Seeding:
        from collidium.seeding import checks, plan
        from collidium.seeding.access import State
        from collidium.seeding.steps import Seeding

        found, settings, source = platform.tasks.find(task), platform.settings, None
        events = plan.ChallengeEvents(task, train, evaluated, channel, pileup, dataset, config, percent)
        if dataset:
            events, source = checks.find_source(events, settings.hub, settings.data_dir / "cache" / "hub")
        size = plan.of_challenge(name, found.card, events, source)
        draft = checks.Draft(name, given, events)
        return Seeding(platform, size, [found], State.open(settings.data_dir), local, report, draft)

    record = run_steps(prepare, dry_run=dry_run)
    if as_json:
        print_json(record | {"challenge": name})
    elif dry_run:
        show_plan(record)
    else:
        note(f"{record['steps']} steps done: collidium challenge show {name}")


@click.command()
@name_argument
@fields_options
@click.option("--announce", "announcement", help="Announce this, in Markdown, on its page.")
@click.option(
    "--correct", nargs=2, type=(NUMBER, str), metavar="N TEXT", help="Correct announcement N of its page."
)
@click.option("--withdraw", type=NUMBER, metavar="N", help="Withdraw announcement N; 1 is the latest.")
@click.option(
    "--refresh-hidden",
    metavar="TRUTH",
    help="Let the events of this imported truth count from now on, and run its models on them.",
)
@key_option
@json_option
def edit(
    name: str,
    correct: tuple[int, str] | None,
    withdraw: int | None,
    refresh_hidden: str | None,
    idempotency_key: str | None,
    as_json: bool,
    **fields: Any,
) -> None:
    """Change what is given of challenge NAME; needs ADMIN_TOKEN.

    \b
    collidium challenge edit jets-2027 --closes 2027-07-01T12:00+02:00 --announce "One day more."
    collidium challenge edit jets-2027 --correct 1 "Two days more."
    collidium challenge edit jets-2027 --withdraw 1
    collidium challenge edit jets-2027 --refresh-hidden 5f0c2b6a91d3
    """
    given = given_fields(fields)
    if sum((bool(given), correct is not None, withdraw is not None, refresh_hidden is not None)) > 1:
        raise click.UsageError("give --correct, --withdraw or --refresh-hidden alone")
    with client() as server:
        if refresh_hidden is not None:
            edited = server.admin_refresh_hidden(name, refresh_hidden, idempotency_key=idempotency_key)
        elif correct is None and withdraw is None:
            edited = server.admin_edit_challenge(name, idempotency_key=idempotency_key, **given)
        else:
            number, text = correct or (withdraw or 0, None)
            announced = server.challenge(name).announcements
            if number > len(announced):
                raise click.UsageError(f"{name} has {len(announced)} announcements")
            at = announced[number - 1].at
            edited = server.admin_correct_announcement(name, at, text, idempotency_key=idempotency_key)
    show_challenge(edited, as_json)


@click.command()
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
    show_challenge(closed, as_json)
    if closed.results_wait_for:
        note(f"Final results wait for {', '.join(closed.results_wait_for)}, which has the same events.")
    elif closed.results_at is None:
        note(f"Final results come when what is being received is scored: collidium leaderboard {name}")


@click.command("open")
@name_argument
@closes_option
@key_option
@json_option
def open_(name: str, closes_at: datetime | None, idempotency_key: str | None, as_json: bool) -> None:
    """Open NAME now, before its date; needs ADMIN_TOKEN.

    \b
    collidium challenge open jets-2027
    """
    _open(name, closes_at, idempotency_key, as_json)


@click.command()
@name_argument
@closes_option
@key_option
@json_option
def reopen(name: str, closes_at: datetime | None, idempotency_key: str | None, as_json: bool) -> None:
    """Open NAME again after its end, unless final results on withheld events were shown; needs ADMIN_TOKEN.

    \b
    collidium challenge reopen jets-2027 --closes 2027-07-02T12:00+02:00
    """
    _open(name, closes_at, idempotency_key, as_json)


def _open(name: str, closes_at: datetime | None, idempotency_key: str | None, as_json: bool) -> None:
    with client() as server:
        opened = server.admin_open_challenge(name, closes_at=closes_at, idempotency_key=idempotency_key)
    show_challenge(opened, as_json)
