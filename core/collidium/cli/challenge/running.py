"""Commands that create, change, open and close a challenge."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.challenge.options import (
    announce_split,
    changes_options,
    closes_option,
    settings_options,
    show_challenge,
)
from collidium.cli.context import client
from collidium.cli.options import challenge_argument, complete_tasks, json_option, key_option, yes_option
from collidium.cli.output import note, show_value

#: Number of an announcement, 1 for the latest.
NUMBER: Final = click.IntRange(min=1)

if TYPE_CHECKING:
    from collidium.client.calls.challenges import ChallengeFields
    from collidium.platform import Platform
    from collidium.seeding.steps import Report, Seeding


@click.command()
@challenge_argument
@click.option("--task", required=True, shell_complete=complete_tasks, help="The task.")
@click.option(
    "--truth", "truth_version", help="Version of `truth list`; default: that of the task's own challenge."
)
@settings_options
@yes_option
@key_option
@json_option
def new(
    name: str,
    task: str,
    truth_version: str | None,
    given: ChallengeFields,
    yes: bool,
    idempotency_key: str | None,
) -> None:
    """Create challenge NAME on existing truth; needs ADMIN_TOKEN.

    NAME has two words or more of a-z and 0-9, joined by hyphens.

    With --public, challenges on the same truth accept no submissions until NAME closes; it says first which.

    \b
    collidium challenge new jets-2027 --task jets
    collidium challenge new jets-2027 --task jets --title "Jets for beginners" --public 30 \\
        --opens 2027-06-01T08:00+02:00 --closes 2027-06-30T12:00+02:00 --rules rules.md
    """
    with client() as server:
        about = {"task": task, "truth_version": truth_version, "closes_at": given.get("closes_at")}
        announce_split(server, name, given.get("public_percent"), yes=yes, **about)
        challenge = server.admin_new_challenge(
            name, task, truth_version=truth_version, idempotency_key=idempotency_key, **given
        )
    show_challenge(challenge)


@click.command()
@challenge_argument
@click.option("--task", required=True, shell_complete=complete_tasks, help="The task.")
@click.option(
    "--events", "train", type=click.IntRange(0, 90_000), required=True, help="Training events, with truth."
)
@click.option(
    "--eval",
    "evaluated",
    type=click.IntRange(2, 1_000_000),
    required=True,
    help="Evaluation events; of each channel, if the task mixes channels.",
)
@click.option("--channel", default="", help="Channel to simulate.  [default: ttbar]")
@click.option(
    "--pileup", type=click.IntRange(0, 200), default=0, show_default=True, help="Pileup collisions per event."
)
@click.option(
    "--dataset",
    metavar="DIR|REPO[@REV]",
    default="",
    help="Take the events from this dataset, the evaluation events last, instead of simulating them.",
)
@click.option("--config", default="", metavar="NAME", help="Config of --dataset, if it has several.")
@settings_options
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
    given: ChallengeFields,
    dry_run: bool,
) -> None:
    """Create challenge NAME with events of its own: simulate, publish without truth, score baselines, open.

    NAME has two words or more of a-z and 0-9, joined by hyphens.

    Runs on the server's machine while `collidium serve` runs, as `collidium seed` does. The challenge is
    listed when its baselines are scored. The same command resumes after an interruption, with the dates and
    rules of the first run.

    \b
    collidium challenge create jets-2027 --task jets --events 2000 --eval 500 --public 30 --dry-run
    collidium challenge create jets-2027 --task jets --events 2000 --eval 500 --public 30 \\
        --opens 2027-06-01T08:00+02:00 --closes 2027-06-30T12:00+02:00 --rules rules.md
    collidium challenge create tracks-2027 --task tracking --dataset ./private --events 100 --eval 50
    """
    from collidium.cli.seed import print_plan, run_steps

    percent = given.pop("public_percent", None)

    def prepare(platform: Platform, local: bool, report: Report) -> Seeding:
        from collidium.seeding import checks, plan
        from collidium.seeding.access import SeedState
        from collidium.seeding.steps import Seeding

        found, settings, source = platform.tasks.find(task), platform.settings, None
        events = plan.ChallengeEvents(task, train, evaluated, channel, pileup, dataset, config, percent)
        if dataset:
            events, source = checks.find_source(events, settings.hub, settings.data_dir / "cache" / "hub")
        size = plan.of_challenge(name, found.card, events, source)
        draft = checks.Draft(name, given, events)
        return Seeding(platform, size, [found], SeedState.open(settings.data_dir), local, report, draft)

    def print_done(record: dict[str, Any]) -> None:
        note(f"{record['steps']} steps done: collidium challenge show {name}")

    record = run_steps(prepare, dry_run=dry_run)
    show_value(record | {"challenge": name}, print_plan if dry_run else print_done)


@click.command()
@challenge_argument
@changes_options
@click.option("--announce", "announcement", help="Add an announcement, in Markdown, to its page.")
@click.option("--correct", nargs=2, type=(NUMBER, str), metavar="N TEXT", help="Correct announcement N.")
@click.option("--withdraw", type=NUMBER, metavar="N", help="Withdraw announcement N; 1 is the latest.")
@click.option(
    "--refresh-hidden",
    metavar="TRUTH",
    help="Score against this imported truth from now on, and run the submitted models on its events.",
)
@yes_option
@key_option
@json_option
def edit(
    name: str,
    correct: tuple[int, str] | None,
    withdraw: int | None,
    refresh_hidden: str | None,
    given: ChallengeFields,
    announcement: str | None,
    yes: bool,
    idempotency_key: str | None,
) -> None:
    """Change fields and announcements of challenge NAME; needs ADMIN_TOKEN.

    \b
    collidium challenge edit jets-2027 --closes 2027-07-01T12:00+02:00 --announce "One day more."
    collidium challenge edit jets-2027 --correct 1 "Two days more."
    collidium challenge edit jets-2027 --withdraw 1
    collidium challenge edit jets-2027 --refresh-hidden 5f0c2b6a91d3
    """
    if announcement is not None:
        given["announcement"] = announcement
    if sum((bool(given), correct is not None, withdraw is not None, refresh_hidden is not None)) > 1:
        raise click.UsageError("give --correct, --withdraw or --refresh-hidden alone")
    with client() as server:
        if refresh_hidden is not None:
            edited = server.admin_refresh_hidden(name, refresh_hidden, idempotency_key=idempotency_key)
        elif correct is None and withdraw is None:
            percent, closes_at = given.get("public_percent"), given.get("closes_at")
            announce_split(server, name, percent, yes=yes, closes_at=closes_at)
            edited = server.admin_edit_challenge(name, idempotency_key=idempotency_key, **given)
        else:
            number, text = correct or (withdraw or 0, None)
            announced = server.challenge(name).announcements
            if number > len(announced):
                raise click.UsageError(f"{name} has {len(announced)} announcements")
            at = announced[number - 1].at
            edited = server.admin_correct_announcement(name, at, text, idempotency_key=idempotency_key)
    show_challenge(edited)


@click.command()
@challenge_argument
@key_option
@json_option
def close(name: str, idempotency_key: str | None) -> None:
    """Close NAME to submissions, and show final results; needs ADMIN_TOKEN.

    Uploads in progress count if they complete within ten minutes; results wait for them.

    \b
    collidium challenge close jets-2027
    """
    with client() as server:
        closed = server.admin_close_challenge(name, idempotency_key=idempotency_key)
    show_challenge(closed)
    if closed.results_wait_for:
        note(f"Final results wait for {', '.join(closed.results_wait_for)}, with the same events.")
    elif closed.results_at is None:
        note(f"Final results follow when pending uploads are scored: collidium leaderboard {name}")


@click.command("open")
@challenge_argument
@closes_option
@key_option
@json_option
def open_(name: str, closes_at: datetime | None, idempotency_key: str | None) -> None:
    """Open NAME now, before its opening date; needs ADMIN_TOKEN.

    \b
    collidium challenge open jets-2027
    """
    _open(name, closes_at, idempotency_key)


@click.command()
@challenge_argument
@closes_option
@key_option
@json_option
def reopen(name: str, closes_at: datetime | None, idempotency_key: str | None) -> None:
    """Reopen NAME, unless final results on withheld events were shown; needs ADMIN_TOKEN.

    \b
    collidium challenge reopen jets-2027 --closes 2027-07-02T12:00+02:00
    """
    _open(name, closes_at, idempotency_key)


def _open(name: str, closes_at: datetime | None, idempotency_key: str | None) -> None:
    with client() as server:
        opened = server.admin_open_challenge(name, closes_at=closes_at, idempotency_key=idempotency_key)
    show_challenge(opened)
